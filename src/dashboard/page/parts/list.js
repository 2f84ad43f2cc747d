import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard, useLoad } from '../data/context.js';
import { parseRoute } from '../router.js';
import { fromLocalTime, toLocalTime } from './form.js';
import { html } from './html.js';
import { Empty, Loadable } from './parts.js';
import { Table } from './table.js';

/**
 * A list of the server with filters and pages. The address of the dashboard contains the filters
 * under the names of the HTTP parameters; the server explains a wrong one.
 * @typedef {Record<string, string | undefined>} Query
 * @typedef {{ given: Record<string, string>, cursor: string, hrefOf: (query: Query) => string, loaded: import('../data/context.js').Loaded<any> }} ListState
 *   `given`: the filters that are not empty; `hrefOf`: the address of the list with other filters
 *   or another page
 */

/**
 * The filters in an address. Several values of one name are combined. @param {URLSearchParams}
 * query
 */
export function filtersIn(query) {
  const names = [...new Set(query.keys())].filter((name) => name !== 'cursor');
  const pairs = names.map((name) => [name, query.getAll(name).filter(Boolean).join(',')]);
  /** @type {Record<string, string>} */
  const given = Object.fromEntries(pairs.filter(([, value]) => value !== ''));
  return given;
}

/**
 * @param {string} path
 * @param {{ query: URLSearchParams, hrefOf: (query: Query) => string, limit?: number, fixed?: Query, version?: number, load?: (list: { given: Record<string, string>, cursor: string, signal: AbortSignal }) => Promise<any> }} options
 *   `fixed`: further parameters of the request; `version`: a change loads again; `load`: replaces
 *   the request of one page
 * @returns {ListState}
 */
export function useList(path, { query, hrefOf, limit = 50, fixed, version, load }) {
  const { api } = useDashboard();
  const given = filtersIn(query);
  const cursor = query.get('cursor') ?? '';
  const url = withQuery(path, { ...fixed, ...given, cursor, limit });
  const loaded = useLoad(
    (signal) => (load ? load({ given, cursor, signal }) : api.get(url, { signal })),
    url,
    version,
  );
  return { given, cursor, hrefOf, loaded };
}

/**
 * The rows of a page and the links to others.
 * @param {{ list: ListState, of: string, empty?: any, after?: (page: any) => any, nextLabel?: (page: any) => string | undefined } & Omit<import('./table.js').Props, 'rows'>} props
 *   `of`: the member of the response with the rows; `empty`: shown if there are none; `after`:
 *   shown below the rows
 */
export function List({ list, of, empty, after, nextLabel, ...table }) {
  const { given, cursor, hrefOf, loaded } = list;
  return html`<${Loadable} loaded=${loaded}>
    ${(/** @type {any} */ page) => html`
      ${
        page[of].length > 0
          ? html`<${Table} ...${table} rows=${page[of]} isBusy=${loaded.isLoading} />`
          : page.next_cursor === null
            ? empty
            : html`<${Empty} title="No match so far."><p>The search continues on the next page.</p><//>`
      }
      ${after?.(page)}
      <${Pager}
        key=${JSON.stringify(given)}
        cursor=${cursor}
        next=${page.next_cursor}
        to=${(/** @type {string | undefined} */ place) => hrefOf({ ...given, cursor: place })}
        nextLabel=${nextLabel?.(page)}
      />
    `}
  <//>`;
}

/**
 * Cursors only lead forward, so the previous page is known only for pages that were opened from it.
 * @param {{ cursor: string, next: string | null, to: (cursor: string | undefined) => string, nextLabel?: string | undefined }} props
 */
function Pager({ cursor, next, to, nextLabel = 'Next page' }) {
  const before = useRef(/** @type {Map<string, string>} */ (new Map()));
  // While a page loads, `next` is still that of the previous page.
  if (next !== null && !before.current.has(next)) before.current.set(next, cursor);
  const previous = before.current.get(cursor);
  if (cursor === '' && next === null) return null;
  return html`<nav class="pager" aria-label="Pages of the list">
    ${cursor !== '' && html`<a href=${to(undefined)}>First page</a>`}
    ${cursor !== '' && previous !== undefined && html`<a href=${to(previous)}>Previous page</a>`}
    ${next !== null && html`<a href=${to(next)}>${nextLabel}</a>`}
  </nav>`;
}

/**
 * A filter of a list: a choice of `values`, several of `many`, a time, or a text.
 * @typedef {{ name: string, label: string, values?: readonly string[], none?: string, many?: readonly string[], isTime?: boolean, suggest?: readonly string[], apply?: (value: string) => void, [attribute: string]: unknown }} FilterField
 *   `none`: the choice without a value; `apply`: replaces the change of the address, after which
 *   the text is empty; others: attributes of a text
 */

/**
 * The filters of a list. A change is applied with Enter, or when a field is left. They are folded
 * on a phone, so that the list is visible.
 * @param {{ list: ListState, label: string, fields: readonly FilterField[] }} props `label`: what the list contains
 */
export function Filters({ list: { given, hrefOf, loaded }, label, fields }) {
  const [isWide] = useState(() => window.matchMedia('(min-width: 64rem)').matches);
  const set = Object.entries(given).map(([name, value]) => `${name} ${value}`);
  const apply = (/** @type {string} */ name) => (/** @type {string} */ value) => {
    // The address may already contain a later change that is not shown yet.
    const now = filtersIn(parseRoute(location.hash).query);
    location.hash = hrefOf({ ...now, [name]: value });
  };
  return html`<details class="filters" open=${isWide}>
    <summary>Filters${set.length > 0 && `: ${set.join(', ')}`}</summary>
    <div class="filter" role="search" aria-label=${label}>
      ${fields.map(({ name, ...field }) => {
        const Filter = field.values ? Choice : field.many ? Choices : field.isTime ? Time : Text;
        return html`<${Filter} key=${name} apply=${apply(name)} isEmptied=${Boolean(field.apply)} ...${field} value=${given[name] ?? ''} />`;
      })}
      ${fields.some(({ isTime }) => isTime) && html`<span class="muted">Time zone: ${Intl.DateTimeFormat().resolvedOptions().timeZone}</span>`}
      <button type="button" onClick=${loaded.reload}>Refresh</button>
      ${set.length > 0 && html`<a href=${hrefOf({})}>Clear filters</a>`}
    </div>
  </details>`;
}

/** @typedef {{ label: string, value: string, apply: (value: string) => void }} FilterProps */

/**
 * @param {FilterProps & { isEmptied?: boolean, type?: string, suggest?: readonly string[], [attribute: string]: unknown }} props
 *   `isEmptied`: after it was applied
 */
function Text({ label, value, apply, isEmptied, type = 'text', suggest, ...attributes }) {
  const [typed, setTyped] = useState(value);
  // Applies synchronously, so that the next key is not lost.
  useLayoutEffect(() => setTyped(value), [value]);
  const done = () => {
    if (typed.trim() === value) return;
    apply(typed.trim());
    if (isEmptied) setTyped('');
  };
  const suggestions = suggest && `suggest-${label.toLowerCase().replaceAll(' ', '-')}`;
  return html`<label>
    <span>${label}</span>
    <input
      type=${type}
      list=${suggestions}
      value=${typed}
      spellcheck=${false}
      autocomplete="off"
      ...${attributes}
      onInput=${(/** @type {any} */ event) => setTyped(event.target.value)}
      onBlur=${done}
      onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => key === 'Enter' && done()}
    />
    ${suggest && html`<datalist id=${suggestions}>${[...new Set(suggest)].map((one) => html`<option key=${one} value=${one} />`)}</datalist>`}
  </label>`;
}

/**
 * A time in the time zone of the browser. @param {FilterProps} props `value`: ISO 8601, or empty
 */
function Time({ label, value, apply }) {
  const local = toLocalTime(value);
  return html`<${Text}
    label=${label}
    value=${local}
    type="datetime-local"
    step=${local.length > 16 ? '1' : undefined}
    apply=${(/** @type {string} */ typed) => apply(fromLocalTime(typed))}
  />`;
}

/** @param {FilterProps & { values: readonly string[], none?: string }} props */
function Choice({ label, value, values, none = 'all', apply }) {
  const offered = value === '' || values.includes(value) ? values : [...values, value];
  return html`<label>
    <span>${label}</span>
    <select onChange=${(/** @type {any} */ event) => apply(event.target.value)}>
      <option value="" selected=${value === ''}>${none}</option>
      ${offered.map((one) => html`<option key=${one} value=${one} selected=${one === value}>${one}</option>`)}
    </select>
  </label>`;
}

/** @param {FilterProps & { many: readonly string[] }} props */
function Choices({ label, value, many, apply }) {
  const chosen = value.split(',').filter(Boolean);
  const toggle = (/** @type {string} */ one) =>
    apply(
      (chosen.includes(one) ? chosen.filter((other) => other !== one) : [...chosen, one]).join(','),
    );
  return html`<fieldset class="choices">
    <legend>${label}</legend>
    ${many.map(
      (one) => html`<label key=${one} class="check">
        <input type="checkbox" checked=${chosen.includes(one)} onChange=${() => toggle(one)} /> ${one}
      </label>`,
    )}
  </fieldset>`;
}
