import { useState } from 'preact/hooks';
import { Field, fromUtcText, toUtcText } from './form.js';
import { html } from './html.js';
import { Icon } from './icons.js';

/**
 * A filter of a list: one of `values`, a time, or a text. Others are attributes of the text.
 * @typedef {{ name: string, label: string, values?: readonly string[], isTime?: boolean, suggest?: readonly string[], hint?: string, [attribute: string]: unknown }} FilterField
 */

const METADATA = 'metadata';

/**
 * The filters of a list as a form, which is open while a filter is in force.
 * @param {{ list: import('./list.js').ListState, label: string, fields: readonly FilterField[] }} props
 *   `label`: what the list contains
 */
export function Filters({ list: { filters, hrefOf, loaded }, label, fields }) {
  const names = new Set(fields.map(({ name }) => name));
  const others = Object.keys(filters).filter((name) => !names.has(name));
  const all = [...fields, ...others.map((name) => ({ name, label: name }))];
  const [wrong, setWrong] = useState(/** @type {string | undefined} */ (undefined));
  const apply = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const entries = all.map((field) => entryOf(field, String(form.get(field.name) ?? '').trim()));
    const invalid = entries.find(([, value]) => value === undefined)?.[0];
    setWrong(invalid);
    if (invalid === undefined) location.hash = hrefOf(Object.fromEntries(entries));
  };
  const hasFilters = Object.keys(filters).length > 0;
  return html`<div class="bar" role="search" aria-label=${label}>
    <details class="filters" open=${hasFilters}>
      <summary>Filters</summary>
      <form key=${JSON.stringify(filters)} onSubmit=${apply} novalidate>
        ${all.map((field) => html`<${Control} key=${field.name} field=${field} value=${filters[field.name] ?? ''} error=${wrong === field.name ? 'Write it like 2026-01-31 14:00.' : undefined} />`)}
        <div class="actions">
          <button class="primary">Apply</button>
          ${hasFilters && html`<a href=${hrefOf({})}>Clear filters</a>`}
        </div>
      </form>
    </details>
    <button type="button" class="plain" aria-label="Refresh" title="Refresh" onClick=${loaded.reload}><${Icon} name="refresh" /></button>
  </div>`;
}

/**
 * The parameter of a filter; its value is undefined if the time is not valid. `order=4711` in the
 * field of the metadata becomes `metadata.order`.
 */
function entryOf({ name, isTime = false }, text) {
  if (isTime && text !== '') return [name, fromUtcText(text) || undefined];
  const [, key, value] = (name === METADATA && /^([^={]+)=(.+)$/.exec(text)) || [];
  return key && value ? [`${METADATA}.${key}`, value] : [name, text];
}

function Control({ field, value, error }) {
  const { name, label, values, isTime, suggest, hint, ...attributes } = field;
  const choices = [...new Set(['', ...(values ?? []), value])];
  const list = suggest && `suggest-${name}`;
  const placeholder = isTime ? '2026-01-31 14:00' : (hint ?? attributes.placeholder);
  return html`<${Field} label=${isTime ? `${label}, UTC` : label} error=${error}>
    ${(described) =>
      values
        ? html`<select ...${described} name=${name}>
            ${choices.map((one) => html`<option key=${one} value=${one} selected=${one === value}>${one.replaceAll(',', ', ') || 'all'}</option>`)}
          </select>`
        : html`<input ...${attributes} ...${described} name=${name} list=${list} placeholder=${placeholder} defaultValue=${isTime ? toUtcText(value) || value : value} autocomplete="off" spellcheck=${false} />
            ${list && html`<datalist id=${list}>${[...new Set(suggest)].map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}`}
  <//>`;
}
