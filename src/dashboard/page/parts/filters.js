import { useLayoutEffect, useState } from 'preact/hooks';
import { fromLocalTime, toLocalTime } from './form.js';
import { html } from './html.js';

/**
 * Returns the conditions in the address of a list, under the names of the HTTP parameters, and the
 * names in the address that are not conditions. A condition that occurs several times has several
 * values.
 * @template {string} Name
 * @param {URLSearchParams} query @param {readonly Name[]} names
 * @returns {{ given: Record<Name, string>, cursor: string, unknown: readonly string[] }} `given`: empty: no condition
 */
export function conditionsIn(query, names) {
  const given = names.map((name) => [name, query.getAll(name).filter(Boolean).join(',')]);
  const unknown = [...new Set(query.keys())].filter(
    (name) => name !== 'cursor' && !names.some((one) => one === name),
  );
  return { given: Object.fromEntries(given), cursor: query.get('cursor') ?? '', unknown };
}

/**
 * Replaces a list whose address has unknown filters: a list that ignores them would be misleading.
 * @param {{ names: readonly string[], href: string }} props `href`: the list without them
 */
export function UnknownFilters({ names, href }) {
  return html`<div class="state failure" role="alert">
    <p><strong>Unknown filter in the address.</strong> There is no filter named ${names.join(', ')}.</p>
    <a href=${href}>Show the list without it</a>
  </div>`;
}

/**
 * The filters of a list. They are folded on a phone, so that the list is visible. @param {{ label:
 * string, given: Record<string, string>, children?: any }} props `label`: what the list contains
 */
export function Filters({ label, given, children }) {
  const [isWide] = useState(() => window.matchMedia('(min-width: 64rem)').matches);
  const set = Object.values(given).filter(Boolean);
  return html`<details class="filters" open=${isWide}>
    <summary>Filters${set.length > 0 && `: ${set.join(', ')}`}</summary>
    <div class="filter" role="search" aria-label=${label}>${children}</div>
  </details>`;
}

/** The time zone of fields with times. */
export function Zone() {
  return html`<span class="muted">Time zone: ${Intl.DateTimeFormat().resolvedOptions().timeZone}</span>`;
}

/**
 * A text that is applied with Enter, or when the field is left.
 * @param {{ label: string, value: string, apply: (value: string) => void, type?: string, [attribute: string]: unknown }} props
 */
export function TextFilter({ label, value, apply, type = 'text', ...attributes }) {
  const [typed, setTyped] = useState(value);
  // Applies synchronously, so that the next key is not lost.
  useLayoutEffect(() => setTyped(value), [value]);
  const done = () => typed.trim() !== value && apply(typed.trim());
  return html`<label>
    <span>${label}</span>
    <input
      type=${type}
      value=${typed}
      spellcheck="false"
      autocomplete="off"
      ...${attributes}
      onInput=${(/** @type {any} */ event) => setTyped(event.target.value)}
      onBlur=${done}
      onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => key === 'Enter' && done()}
    />
  </label>`;
}

/**
 * A field for a time in the time zone of the browser. @param {{ label: string, value: string,
 * apply: (value: string) => void }} props `value`: ISO 8601, or empty
 */
export function TimeFilter({ label, value, apply }) {
  const local = toLocalTime(value);
  return html`<${TextFilter}
    label=${label}
    value=${local}
    type="datetime-local"
    step=${local.length > 16 ? '1' : undefined}
    apply=${(/** @type {string} */ typed) => apply(fromLocalTime(typed))}
  />`;
}

/**
 * A field that selects one of several values, or all. @param {{ label: string, value: string,
 * values: readonly string[], apply: (value: string) => void }} props
 */
export function ChoiceFilter({ label, value, values, apply }) {
  const offered = value === '' || values.includes(value) ? values : [...values, value];
  return html`<label>
    <span>${label}</span>
    <select onChange=${(/** @type {any} */ event) => apply(event.target.value)}>
      <option value="" selected=${value === ''}>all</option>
      ${offered.map((one) => html`<option key=${one} value=${one} selected=${one === value}>${one}</option>`)}
    </select>
  </label>`;
}

/**
 * The values that a field with this `list` suggests. @param {{ id: string, of: readonly string[] }}
 * props
 */
export function Suggestions({ id, of }) {
  return html`<datalist id=${id}>${[...new Set(of)].map((value) => html`<option key=${value} value=${value} />`)}</datalist>`;
}
