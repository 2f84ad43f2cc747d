import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useDashboard, useLoad } from '../data/context.js';
import { Zone } from '../parts/filters.js';
import { fromLocalTime, toLocalTime } from '../parts/form.js';
import { absoluteTime } from '../parts/format.js';
import { html } from '../parts/html.js';
import { hrefTo } from '../router.js';
import { STATUSES } from './submission-table.js';

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
function statusesOf(filters) {
  return filters.filter(([name]) => name === 'status').flatMap(([, value]) => value.split(','));
}

/** Names and values of metadata. @param {Filters} filters @returns {[string, string][]} */
function metadataOf(filters) {
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
function filtersOf(form, before) {
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

const TYPING_MS = 300;
/** Typing a time causes a change event for each of its parts. */
const TYPING_TIME_MS = 1_500;

/**
 * The filters as controls. A change navigates to the URL of the new filters: for typed text after a
 * pause or Enter, for other controls at once. `errors`: by the name of the filter.
 * @param {{ filters: Filters, hasAny: boolean, errors: Map<string, string>, reload: () => void }} props `hasAny`: there is something to clear
 */
export function FilterForm({ filters, hasAny, errors, reload }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (/** @type {{ isTyping?: boolean }} */ { isTyping } = {}) => {
    clearTimeout(timer.current);
    if (!form.current) return;
    const href = hrefOf(filtersOf(form.current, filters));
    if (href === hrefOf(filters)) return;
    // Replaces the history entry, so that the back button does not undo single letters.
    if (isTyping) location.replace(href);
    else location.hash = href;
  };
  const applyAfter = (/** @type {number} */ pauseMs) => () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => apply({ isTyping: true }), pauseMs);
  };
  const type = applyAfter(TYPING_MS);
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    apply();
  };
  const time = (/** @type {string} */ name) => ({
    ...text(name),
    type: 'datetime-local',
    step: '1',
    onInput: applyAfter(TYPING_TIME_MS),
    onChange: (/** @type {Event} */ event) => event.stopPropagation(),
    onBlur: () => apply(),
    onKeyDown: (/** @type {KeyboardEvent} */ { key }) => key === 'Enter' && apply(),
  });
  const text = (/** @type {string} */ name) => ({
    name,
    value: filterOf(filters, name),
    error: errors.get(name),
  });
  // A phone shows the list first.
  const [isWide] = useState(() => window.matchMedia('(min-width: 64rem)').matches);
  const inner = filters.filter(([name]) => name !== 'search');
  return html`<form class="filters" role="search" ref=${form} onSubmit=${submit} onChange=${() => apply()}>
    <div class="filter">
      <${Field} label="Text in ids and metadata" type="search" maxlength="128" onInput=${type} ...${text('search')} />
      <button type="button" onClick=${reload}>Refresh</button>
      ${hasAny && html`<a href=${hrefOf([])}>Clear all filters</a>`}
    </div>
    <details open=${isWide}>
      <summary>Filters${inner.length === 0 ? '' : `: ${describe(inner)}`}</summary>
      <${StatusFields} chosen=${statusesOf(filters)} error=${errors.get('status')} />
      <div class="filter">
        <${Field} label="ID prefix" maxlength="128" onInput=${type} ...${text('prefix')} />
        <${Field} label="Upstream" list="upstreams" maxlength="32" ...${text('upstream')} />
        <${UpstreamNames} />
        <${MetadataFields} pairs=${metadataOf(filters)} error=${errors.get('metadata')} apply=${apply} />
      </div>
      <div class="filter">
        <${Field} label="Tracked since" ...${time('tracked_since')} />
        <${Field} label="Tracked before" ...${time('tracked_until')} />
        <${Field} label="Ended since" ...${time('ended_since')} />
        <${Field} label="Ended before" ...${time('ended_until')} />
        <${Zone} />
      </div>
    </details>
  </form>`;
}

/**
 * A field that keeps what is typed until the value changes.
 * @param {{ label: string, name: string, value: string, type?: string, error?: string | undefined, onInput?: () => void } & Record<string, unknown>} props
 */
function Field({ label, name, value, type = 'text', error, onInput, ...attributes }) {
  const id = useId();
  const shown = type === 'datetime-local' ? toLocalTime(value) : value;
  const [typed, setTyped] = useState(shown);
  // The user may continue after a space at the end.
  useEffect(() => setTyped((before) => (before.trim() === shown ? before : shown)), [shown]);
  return html`<label>
    <span>${label}</span>
    <input
      ...${attributes}
      name=${name}
      type=${type}
      value=${typed}
      spellcheck=${false}
      autocomplete="off"
      aria-invalid=${error ? 'true' : undefined}
      aria-describedby=${error ? id : undefined}
      onInput=${(/** @type {any} */ event) => {
        setTyped(event.target.value);
        onInput?.();
      }}
    />
    ${error && html`<span class="wrong" id=${id}>${error}</span>`}
  </label>`;
}

/** The names of the upstreams, as suggestions. */
function UpstreamNames() {
  const { api } = useDashboard();
  const { data } = useLoad((signal) => api.get('v1/overview', { signal }), 'upstreams');
  return html`<datalist id="upstreams">
    ${data?.upstreams.map((/** @type {{ name: string }} */ { name }) => html`<option key=${name} value=${name}></option>`)}
  </datalist>`;
}

/** @param {{ chosen: readonly string[], error: string | undefined }} props */
function StatusFields({ chosen, error }) {
  return html`<fieldset class="choices">
    <legend>Status</legend>
    ${STATUSES.map(
      (name) => html`<label key=${name}>
        <input type="checkbox" name="status" value=${name} checked=${chosen.includes(name)} /> ${name}
      </label>`,
    )}
    ${error && html`<span class="wrong">${error}</span>`}
  </fieldset>`;
}

/**
 * @param {{ pairs: readonly (readonly [string, string])[], error: string | undefined, apply: () =>
 * void }} props
 */
function MetadataFields({ pairs, error, apply }) {
  const of = JSON.stringify(pairs);
  const [rows, setRows] = useState(pairs);
  const isRemoved = useRef(false);
  useEffect(() => setRows(pairs.length === 0 ? [['', '']] : pairs), [of]);
  useEffect(() => {
    if (isRemoved.current) apply();
    isRemoved.current = false;
  }, [rows]);
  const change = (/** @type {number} */ at, /** @type {readonly [string, string]} */ row) =>
    setRows(rows.map((before, index) => (index === at ? row : before)));
  const remove = (/** @type {number} */ at) => {
    isRemoved.current = true;
    setRows(rows.filter((_, index) => index !== at));
  };
  const input = (
    /** @type {string} */ name,
    /** @type {string} */ label,
    /** @type {string} */ value,
    /** @type {(text: string) => void} */ set,
  ) =>
    html`<input
      name=${name}
      aria-label=${label}
      placeholder=${label.replace(/ .*/, '')}
      value=${value}
      spellcheck=${false}
      autocomplete="off"
      onInput=${(/** @type {any} */ event) => set(event.target.value)}
    />`;
  return html`<fieldset class="pairs">
    <legend>Metadata, compared as text</legend>
    ${rows.map(
      ([name, value], index) => html`<div key=${index}>
        ${input('metadata-name', `Name ${index + 1}`, name, (text) => change(index, [text, value]))} =
        ${input('metadata-value', `Value ${index + 1}`, value, (text) => change(index, [name, text]))}
        <button type="button" class="plain" aria-label=${`Remove value ${index + 1}`} onClick=${() => remove(index)}>Remove</button>
      </div>`,
    )}
    <button type="button" class="plain" onClick=${() => setRows([...rows, ['', '']])}>Add a value</button>
    ${error && html`<p class="wrong">${error}</p>`}
  </fieldset>`;
}
