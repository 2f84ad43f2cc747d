import { useRef, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard, useLoad } from '../data/context.js';
import { hrefTo, parseRoute } from '../router.js';
import { Field, fromUtcText, toUtcText } from './form.js';
import { html, Icon } from './html.js';
import { Empty, Loadable } from './parts.js';
import { Table } from './table.js';

/**
 * A list of the server with filters and pages. The address of the dashboard contains the filters
 * under the names of the HTTP parameters; the server explains a wrong one.
 * @typedef {Record<string, string | undefined>} Query
 * @typedef {{ url: string, filters: Record<string, string>, cursor: string, hrefOf: (query: Query) => string, loaded: import('../data/context.js').Loaded<any> }} ListState
 *   `url`: of the request; `filters`: the filters that are not empty; `hrefOf`: the address of the
 *   list with other filters or another page
 */

/** The filters in an address. Several values of one name are combined. */
function filtersIn(query) {
  const names = [...new Set(query.keys())].filter((name) => name !== 'cursor');
  const pairs = names.map((name) => [name, query.getAll(name).filter(Boolean).join(',')]);
  /** @type {Record<string, string>} */
  const filters = Object.fromEntries(pairs.filter(([, value]) => value !== ''));
  return filters;
}

const PAGE = 50;

/**
 * @param {string} path
 * @param {{ query: URLSearchParams, fixed?: Query, version?: number }} options
 *   `fixed`: further parameters of the request; `version`: a change loads again
 * @returns {ListState}
 */
export function useList(path, { query, fixed, version }) {
  const { api } = useDashboard();
  const { page, id } = parseRoute(location.hash);
  const hrefOf = (/** @type {Query} */ changed) => hrefTo(page, id, changed);
  const filters = filtersIn(query);
  const cursor = query.get('cursor') ?? '';
  const url = withQuery(path, { ...fixed, ...filters, cursor, limit: PAGE });
  const loaded = useLoad((signal) => api.get(url, { signal }), url, version);
  return { url, filters, cursor, hrefOf, loaded };
}

/**
 * The rows of a page and the links to others.
 * @param {{ list: ListState, of: string, empty?: any } & Omit<import('./table.js').Props, 'rows'>} props
 *   `of`: the member of the response with the rows; `empty`: shown if the list has none
 */
export function List({ list: { url, filters, cursor, hrefOf, loaded }, of, empty, ...table }) {
  return html`<${Loadable} loaded=${loaded}>
    ${(page) => html`
      ${
        page[of].length > 0
          ? html`<${Rows} hidesCaption ...${table} url=${url} page=${page} rows=${page[of]} isBusy=${loaded.isLoading} />`
          : page.next_cursor !== null
            ? html`<${Empty} title="No match so far."><p>The search continues on the next page.</p><//>`
            : cursor !== ''
              ? html`<${Empty} title=${`No more ${of}.`} />`
              : Object.keys(filters).length > 0
                ? html`<${Empty} title="Nothing matches the filters."><p><a href=${hrefOf({})}>Show all ${of}</a></p><//>`
                : empty
      }
      <${Pager}
        key=${JSON.stringify(filters)}
        cursor=${cursor}
        next=${page.next_cursor}
        to=${(place) => hrefOf({ ...filters, cursor: place })}
      />
    `}
  <//>`;
}

/**
 * The rows of a page. While a person reads them, new ones wait behind a button, so that no row
 * moves; the others show their newest values.
 */
function Rows({ url, page, rows, keyOf = ({ id }) => id, ...table }) {
  const region = useRef(/** @type {HTMLElement | null} */ (null));
  const shown = useRef({ url, page, rows, held: 0 });
  const [, render] = useState(0);
  if (shown.current.page !== page) {
    const before = shown.current;
    const isRead = before.url === url && (before.held > 0 || isReading(region.current));
    const known = new Set(before.rows.map(keyOf));
    const held = isRead ? rows.filter((row) => !known.has(keyOf(row))).length : 0;
    const newest = new Map(rows.map((row) => [keyOf(row), row]));
    const kept = before.rows.flatMap(
      // Others may have moved to the next page.
      (row) => newest.get(keyOf(row)) ?? (page.next_cursor === null ? [] : row),
    );
    shown.current = { url, page, rows: held > 0 ? kept : rows, held };
  }
  const showAll = () => {
    shown.current = { url, page, rows, held: 0 };
    render((times) => times + 1);
  };
  const { held } = shown.current;
  return html`<div ref=${region}>
    ${held > 0 && html`<div class="held"><button type="button" class="primary" onClick=${showAll}>${held}${held === PAGE && '+'} new</button></div>`}
    <${Table} ...${table} keyOf=${keyOf} rows=${shown.current.rows} />
  </div>`;
}

/** @param {HTMLElement | null} region whether it has the pointer or the focus, or is scrolled */
function isReading(region) {
  if (!region) return false;
  return region.matches(':hover, :focus-within') || region.getBoundingClientRect().top < 0;
}

/** Cursors only lead forward, so only a page opened from another one has a previous page. */
function Pager({ cursor, next, to }) {
  const before = useRef(/** @type {Map<string, string>} */ (new Map()));
  // While a page loads, `next` is still that of the previous page.
  if (next !== null && !before.current.has(next)) before.current.set(next, cursor);
  const previous = before.current.get(cursor);
  if (cursor === '' && next === null) return null;
  return html`<nav class="actions" aria-label="Pages of the list">
    ${cursor !== '' && html`<a href=${to(undefined)}>First page</a>`}
    ${cursor !== '' && previous !== undefined && html`<a href=${to(previous)}>Previous page</a>`}
    ${next !== null && html`<a href=${to(next)}>Next page</a>`}
  </nav>`;
}

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
    const textOf = (name) => String(form.get(name) ?? '').trim();
    // A condition on metadata replaces earlier ones.
    const entries = all
      .filter(({ name }) => textOf(METADATA) === '' || !name.startsWith(`${METADATA}.`))
      .map((field) => entryOf(field, textOf(field.name)));
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

/** Undefined if the time is not valid. `order=4711` for the metadata becomes `metadata.order`. */
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
