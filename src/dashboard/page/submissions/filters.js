import { fromLocalTime, toLocalTime } from '../parts/form.js';
import { absoluteTime } from '../parts/format.js';
import { hrefTo } from '../router.js';

/**
 * The filters of the list, as names and values of parameters of `GET /v1/submissions`. The URL of
 * the page has the same parameters. A name that occurs twice is kept, so that the error of the
 * server explains it.
 * @typedef {readonly (readonly [name: string, value: string])[]} Filters
 */

const TEXTS = ['search', 'prefix', 'upstream'];
const TIMES = ['tracked_since', 'tracked_until', 'ended_since', 'ended_until'];
const NAMES = ['status', ...TEXTS, ...TIMES];
const METADATA = 'metadata.';

/**
 * @param {URLSearchParams} query @returns {{ filters: Filters, cursor: string, unknown: readonly
 * string[] }} `unknown`: names that are not filters
 */
export function readQuery(query) {
  const given = [...query].filter(([name]) => name !== 'cursor');
  return {
    filters: given.filter(
      ([name, value]) => (NAMES.includes(name) && value !== '') || name.startsWith(METADATA),
    ),
    cursor: query.get('cursor') ?? '',
    unknown: given
      .map(([name]) => name)
      .filter((name) => !NAMES.includes(name) && !name.startsWith(METADATA)),
  };
}

/**
 * The parameters of a request, or of the URL. @param {Filters} filters @param {string | null}
 * [cursor]
 */
export function queryOf(filters, cursor) {
  const query = new URLSearchParams(filters.map(([name, value]) => [name, value]));
  if (cursor) query.set('cursor', cursor);
  return query;
}

/** The URL of the list. @param {Filters} filters @param {string} [cursor] */
export function hrefOf(filters, cursor) {
  const query = queryOf(filters, cursor);
  return `${hrefTo('submissions')}${query.size === 0 ? '' : `?${query}`}`;
}

/** The value of a filter; '' if it is absent. @param {Filters} filters @param {string} wanted */
export function filterOf(filters, wanted) {
  return filters.find(([name]) => name === wanted)?.[1] ?? '';
}

/** @param {Filters} filters @returns {readonly string[]} */
export function statusesOf(filters) {
  return filters.filter(([name]) => name === 'status').flatMap(([, value]) => value.split(','));
}

/** Names and values of metadata. @param {Filters} filters @returns {[string, string][]} */
export function metadataOf(filters) {
  return filters
    .filter(([name]) => name.startsWith(METADATA))
    .map(([name, value]) => [name.slice(METADATA.length), value]);
}

/**
 * Returns the filters in the form. An unchanged time keeps its fraction of a second, which the form
 * does not show. A metadata name with an empty value applies only if it applied before, because a
 * name is entered before its value.
 * @param {HTMLFormElement} form @param {Filters} before @returns {Filters}
 */
export function filtersOf(form, before) {
  const data = new FormData(form);
  const textsOf = (/** @type {string} */ name) => data.getAll(name).map(String);
  const values = textsOf('metadata-value');
  /** @type {[string, string][]} */
  const metadata = textsOf('metadata-name').map((name, index) => [
    `${METADATA}${name}`,
    values[index] ?? '',
  ]);
  /** @type {[string, string][]} */
  const others = [
    ['status', textsOf('status').join(',')],
    ...TEXTS.map(
      (name) => /** @type {[string, string]} */ ([name, String(data.get(name) ?? '').trim()]),
    ),
    ...TIMES.map((name) => {
      const [shown, given] = [String(data.get(name) ?? ''), filterOf(before, name)];
      return /** @type {[string, string]} */ ([
        name,
        isShownAs(given, shown) ? given : fromLocalTime(shown),
      ]);
    }),
  ];
  return [
    ...others.filter(([, value]) => value !== ''),
    ...metadata.filter(
      ([name, value]) =>
        name !== METADATA && (value !== '' || before.some(([known]) => known === name)),
    ),
  ];
}

/** Browsers omit zero seconds. @param {string} iso @param {string} local */
export function isShownAs(iso, local) {
  return local !== '' && fromLocalTime(toLocalTime(iso)) === fromLocalTime(local);
}

/** @type {Record<string, string>} */
const LABELS = {
  search: 'text',
  prefix: 'ID prefix',
  tracked_since: 'tracked since',
  tracked_until: 'tracked before',
  ended_since: 'ended since',
  ended_until: 'ended before',
};

/** The filters in words; '' if there are none. @param {Filters} filters */
export function describe(filters) {
  return filters
    .map(([name, value]) => {
      if (name.startsWith(METADATA)) return `${name.slice(METADATA.length)} = ${value}`;
      const shown =
        TIMES.includes(name) && !Number.isNaN(Date.parse(value)) ? absoluteTime(value) : value;
      return `${LABELS[name] ?? name} ${shown.replaceAll(/,(?=\S)/g, ', ')}`;
    })
    .join('; ');
}
