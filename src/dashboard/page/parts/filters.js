import { useState } from 'preact/hooks';
import { parseRoute } from '../router.js';
import { Drop } from './drop.js';
import { Field, fromUtcText, toUtcText } from './form.js';
import { count } from './format.js';
import { html } from './html.js';
import { Icon } from './icon.js';
import { filtersIn } from './list.js';
import { Views } from './views.js';

/**
 * A filter of a list: a choice of `values`, several of `many`, a time, or a text.
 * @typedef {{ name: string, label: string, values?: readonly string[], none?: string, many?: readonly string[], counts?: Record<string, number> | undefined, isTime?: boolean, suggest?: readonly string[], hint?: string, [attribute: string]: unknown }} FilterField
 *   `none`: the choice without a value; `counts`: of the values; others: attributes of a text
 * @typedef {{ label: string, query: import('./list.js').Query, number?: number | undefined, isCurrent: boolean }} Preset
 *   `number`: of its rows; the list shows that of the current one
 * @typedef {{ placeholder: string, fieldOf: (words: string) => string, hasMetadata?: boolean }} Search
 *   `fieldOf`: the filter that words without a name mean; `hasMetadata`: `name=value` is a filter
 *   of the metadata
 */

const METADATA = 'metadata.';

/**
 * The filters of a list as one line: a search field, presets, chips of the filters in force, and a
 * menu of all filters.
 * @param {{ list: import('./list.js').ListState, label: string, fields: readonly FilterField[], search?: Search, presets?: readonly Preset[], children?: any }} props
 *   `label`: what the list contains; `children`: further controls
 */
export function Filters({ list, label, fields, search, presets = [], children }) {
  const { given, hrefOf, loaded } = list;
  const [isOpen, setIsOpen] = useState(false);
  const [edited, setEdited] = useState(/** @type {string | undefined} */ (undefined));
  const edit = (/** @type {string | undefined} */ name) => {
    setEdited(name);
    setIsOpen(true);
  };
  const apply = (/** @type {Record<string, string>} */ changes) => {
    // The address may already contain a later change that is not shown yet.
    const now = filtersIn(parseRoute(location.hash).query);
    location.hash = hrefOf({ ...now, ...changes });
  };
  const fieldOf = (/** @type {string} */ name) =>
    fields.find((field) => field.name === name) ?? { name, label: name.replace(METADATA, '') };
  const field = edited === undefined ? undefined : fieldOf(edited);
  return html`<div class="bar" role="search" aria-label=${label}>
    ${search && html`<${SearchField} search=${search} fields=${fields} label=${label} apply=${apply} />`}
    ${presets.map(
      (
        preset,
      ) => html`<a key=${preset.label} class="button preset" href=${hrefOf(preset.query)} aria-current=${preset.isCurrent ? 'true' : undefined}>
        ${preset.label}${preset.number !== undefined && !preset.isCurrent && html`<span class="number muted">${count(preset.number)}</span>`}
      </a>`,
    )}
    <${Drop}
      label=${html`<${Icon} name="plus" />Filter`}
      title="Filters"
      isOpen=${isOpen}
      setOpen=${(/** @type {boolean} */ open) => (open ? edit(undefined) : setIsOpen(false))}
    >
      ${
        field
          ? html`<${Editor} key=${field.name} field=${field} value=${given[field.name] ?? ''} apply=${(/** @type {string} */ value) => apply({ [field.name]: value })} close=${() => setIsOpen(false)} />`
          : fields.map(
              ({ name, label }) =>
                html`<button key=${name} type="button" class="plain" onClick=${() => edit(name)}>${label}</button>`,
            )
      }
    <//>
    ${Object.entries(given).map(([name, value]) => html`<${Chip} key=${name} field=${fieldOf(name)} value=${value} edit=${() => edit(name)} without=${hrefOf({ ...given, [name]: undefined })} />`)}
    ${Object.keys(given).length > 0 && html`<a href=${hrefOf({})}>Clear filters</a>`}
    ${children}
    <${Views} list=${list} label=${label} />
    <button type="button" class="plain" aria-label="Refresh" title="Refresh" onClick=${loaded.reload}><${Icon} name="refresh" /></button>
  </div>`;
}

/**
 * @param {{ field: FilterField, value: string, edit: () => void, without: string }} props `without`: the address without it
 */
function Chip({ field: { label, isTime }, value, edit, without }) {
  const shown = isTime ? toUtcText(value) || value : value.replaceAll(',', ', ');
  return html`<span class="chip">
    <button type="button" onClick=${edit}><span>${label}: ${shown}</span></button>
    <a href=${without} aria-label=${`Remove the filter ${label}`}><${Icon} name="x" /></a>
  </span>`;
}

/**
 * @param {{ search: Search, fields: readonly FilterField[], label: string, apply: (changes: Record<string, string>) => void }} props
 */
function SearchField({ search, fields, label, apply }) {
  const onKeyDown = (/** @type {any} */ { key, target }) => {
    if (key !== 'Enter' || target.value.trim() === '') return;
    apply(filtersOf(target.value, fields, search));
    target.value = '';
  };
  return html`<div class="search">
    <${Icon} name="search" />
    <input type="search" aria-label=${`Search ${label.toLowerCase()}`} placeholder=${search.placeholder} autocomplete="off" spellcheck=${false} onKeyDown=${onKeyDown} />
  </div>`;
}

/**
 * The filters of a search: `status:failing`, `order=4711`, words; quotes keep a word whole. A name
 * that is no filter is a part of the words.
 * @param {string} text @param {readonly FilterField[]} fields @param {Search} search
 */
export function filtersOf(text, fields, { fieldOf, hasMetadata }) {
  /** @type {Record<string, string>} */
  const filters = {};
  const words = [];
  for (const [token] of text.matchAll(/(?:"[^"]*"|[^\s"])+/g)) {
    const plain = token.replaceAll('"', '');
    const [, name = '', sign, value = ''] = /^([\w.-]+)([:=])(.+)$/.exec(token) ?? [];
    const field = fields.find((one) => one.name === name);
    const given = value.replaceAll('"', '');
    if (sign === ':' && field) filters[name] = field.isTime ? fromUtcText(given) || given : given;
    else if (sign === '=' && hasMetadata) filters[METADATA + name] = given;
    else words.push(plain);
  }
  const rest = words.join(' ');
  return rest === '' ? filters : { ...filters, [fieldOf(rest)]: rest };
}

/**
 * @param {{ field: FilterField, value: string, apply: (value: string) => void, close: () => void }} props
 */
function Editor({ field, value, apply, close }) {
  const { values, many, none = 'all', counts } = field;
  if (values) {
    const choose = (/** @type {string} */ one) => {
      apply(one);
      close();
    };
    return ['', ...values].map(
      (one) =>
        html`<button key=${one} type="button" class="plain" aria-pressed=${one === value} onClick=${() => choose(one)}>${one || none}</button>`,
    );
  }
  if (many) {
    const chosen = value.split(',').filter(Boolean);
    const toggle = (/** @type {string} */ one) =>
      apply(
        (chosen.includes(one) ? chosen.filter((other) => other !== one) : [...chosen, one]).join(),
      );
    return many.map(
      (one) => html`<label key=${one}>
        <input type="checkbox" checked=${chosen.includes(one)} onChange=${() => toggle(one)} />${one}
        ${counts && html`<span class="number" aria-hidden="true">${count(counts[one] ?? 0)}</span>`}
      </label>`,
    );
  }
  return html`<${TextEditor} field=${field} value=${value} apply=${apply} close=${close} />`;
}

/**
 * @param {{ field: FilterField, value: string, apply: (value: string) => void, close: () => void }} props
 */
function TextEditor({ field, value, apply, close }) {
  const { name, label, isTime, suggest, hint, values: _, many: __, ...attributes } = field;
  const [error, setError] = useState(/** @type {string | undefined} */ (undefined));
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    const text = event.target.elements.value.value.trim();
    const applied = isTime ? fromUtcText(text) : text;
    if (text !== '' && applied === '') return setError('Write it like 2026-01-31 14:00.');
    apply(applied);
    return close();
  };
  return html`<form class="form" onSubmit=${submit} novalidate>
    <${Field} label=${label} hint=${isTime ? 'UTC' : hint} error=${error}>
      ${(/** @type {object} */ given) => html`
        <input
          name="value"
          autocomplete="off"
          spellcheck=${false}
          placeholder=${isTime ? '2026-01-31 14:00' : undefined}
          ...${attributes}
          ...${given}
          list=${suggest && `suggest-${name}`}
          defaultValue=${isTime ? toUtcText(value) : value}
        />
        ${suggest && html`<datalist id=${`suggest-${name}`}>${[...new Set(suggest)].map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}
      `}
    <//>
    <button class="primary">Apply</button>
  </form>`;
}
