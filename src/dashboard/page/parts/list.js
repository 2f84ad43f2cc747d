import { useRef } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard, useLoad } from '../data/context.js';
import { hrefTo, parseRoute } from '../router.js';
import { html } from './html.js';
import { Empty, Loadable } from './parts.js';
import { Table } from './table.js';

/**
 * A list of the server with filters and pages. The address of the dashboard contains the filters
 * under the names of the HTTP parameters; the server explains a wrong one.
 * @typedef {Record<string, string | undefined>} Query
 * @typedef {{ filters: Record<string, string>, cursor: string, hrefOf: (query: Query) => string, loaded: import('../data/context.js').Loaded<any> }} ListState
 *   `filters`: the filters that are not empty; `hrefOf`: the address of the list with other filters
 *   or another page
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
  return { filters, cursor, hrefOf, loaded };
}

/**
 * The rows of a page and the links to others.
 * @param {{ list: ListState, of: string, empty?: any } & Omit<import('./table.js').Props, 'rows'>} props
 *   `of`: the member of the response with the rows; `empty`: shown if there are none
 */
export function List({ list: { filters, cursor, hrefOf, loaded }, of, empty, ...table }) {
  return html`<${Loadable} loaded=${loaded}>
    ${(page) => html`
      ${
        page[of].length > 0
          ? html`<${Table} hidesCaption ...${table} rows=${page[of]} isBusy=${loaded.isLoading} />`
          : page.next_cursor === null
            ? empty
            : html`<${Empty} title="No match so far."><p>The search continues on the next page.</p><//>`
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
 * Cursors only lead forward, so the previous page is known only for pages that were opened from it.
 */
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
