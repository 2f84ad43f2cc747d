import { useState } from 'preact/hooks';
import { useStored } from '../data/stored.js';
import { Drop } from './drop.js';
import { TextField, textOf } from './form.js';
import { html } from './html.js';
import { Icon } from './icon.js';

/** @typedef {{ name: string, given: Record<string, string> }} View filters with a name */

/**
 * The saved filters of a list, which the browser keeps.
 * @param {{ list: import('./list.js').ListState, label: string }} props `label`: what the list contains
 */
export function Views({ list: { given, hrefOf }, label }) {
  const [isOpen, setIsOpen] = useState(false);
  const [views, setViews] = useStored(`views.${label}`, /** @type {readonly View[]} */ ([]));
  const save = (/** @type {any} */ event) => {
    event.preventDefault();
    const name = textOf(new FormData(event.target), 'name');
    if (name === '') return;
    setViews([...views.filter((one) => one.name !== name), { name, given }]);
    setIsOpen(false);
  };
  return html`<${Drop} label=${html`<${Icon} name="star" /><span>Views</span>`} name="Views" title="Saved views" className="plain" isOpen=${isOpen} setOpen=${setIsOpen}>
    ${views.map(
      (view) => html`<div key=${view.name} class="view">
        <a href=${hrefOf(view.given)} onClick=${() => setIsOpen(false)}>${view.name}</a>
        <button type="button" class="plain" aria-label=${`Delete the view ${view.name}`} onClick=${() => setViews(views.filter((one) => one !== view))}><${Icon} name="x" /></button>
      </div>`,
    )}
    ${views.length === 0 && html`<p class="muted">No view is saved in this browser.</p>`}
    <form class="form" onSubmit=${save}>
      <${TextField} label="Save the current filters as" name="name" />
      <button class="primary">Save</button>
    </form>
  <//>`;
}
