import { useEffect, useRef, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { useDashboard, useFeed } from '../data/context.js';
import { useLoad } from '../data/use-load.js';
import { html } from '../parts/html.js';
import { Pager } from '../parts/pager.js';
import { Empty, Loadable } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { STATUSES, SubmissionTable, TrackHint } from './submission-table.js';

const PER_PAGE = 50;
const TYPING_MS = 300;

/** The list of all submissions, of one status, or of one ID prefix. @param {{ query: URLSearchParams }} props */
export function SubmissionsPage({ query }) {
  const { api } = useDashboard();
  const status = query.get('status') ?? '';
  const prefix = query.get('q') ?? '';
  const cursor = query.get('cursor') ?? '';
  const path = withQuery('v1/submissions', { status: prefix ? '' : status, prefix, cursor, limit: PER_PAGE });
  const loaded = useLoad((signal) => api.get(path, { signal }), path);
  const to = (/** @type {string | undefined} */ place) =>
    hrefTo('submissions', undefined, { status, q: prefix, cursor: place });
  useFeed(({ events, isWhole }) => {
    if (!isWhole) loaded.reload();
    else if (events.some(({ data }) => data.submission)) loaded.setData((page) => withEvents(page, events));
  });

  return html`<h1 tabindex="-1">Submissions</h1>
    <${Filter} status=${status} prefix=${prefix} reload=${loaded.reload} />
    <${Loadable} loaded=${loaded}>
      ${(/** @type {any} */ page) =>
        page.submissions.length === 0
          ? html`<${Nothing} status=${status} prefix=${prefix} cursor=${cursor} />`
          : html`<${SubmissionTable} submissions=${page.submissions} isLoading=${loaded.isLoading} caption=${captionOf(status, prefix)} />
              <${Pager} key=${`${status} ${prefix}`} cursor=${cursor} next=${page.next_cursor} to=${to} />`}
    <//>`;
}

/** Updates the displayed rows in place; rows never move while the user reads them. @param {any} page @param {readonly any[]} events */
function withEvents(page, events) {
  const newest = new Map(events.map(({ data }) => [data.submission?.submission_id, data.submission]));
  const isShown = page.submissions.some((/** @type {any} */ { submission_id }) => newest.has(submission_id));
  if (!isShown) return page;
  const submissions = page.submissions.map((/** @type {any} */ one) => ({ ...one, ...newest.get(one.submission_id) }));
  return { ...page, submissions };
}

/** @param {string} status @param {string} prefix */
function captionOf(status, prefix) {
  if (prefix) return `Submissions whose IDs begin with ${prefix}`;
  return status ? `Submissions that are ${status}, newest first` : 'Submissions, newest first';
}

/** @param {{ status: string, prefix: string, reload: () => void }} props */
function Filter({ status, prefix, reload }) {
  const [typed, setTyped] = useState(prefix);
  const timer = useRef(/** @type {number | undefined} */ (undefined));
  useEffect(() => setTyped(prefix), [prefix]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = (/** @type {string} */ text) => {
    clearTimeout(timer.current);
    const q = text.trim();
    if (q !== prefix) location.replace(hrefTo('submissions', undefined, { q, status: q ? undefined : status }));
  };
  const type = (/** @type {string} */ text) => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => search(text), TYPING_MS);
  };
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    search(typed);
  };
  return html`<form class="filter" role="search" onSubmit=${submit}>
    <label>
      <span>ID prefix</span>
      <input
        type="search"
        value=${typed}
        maxlength="128"
        spellcheck="false"
        autocomplete="off"
        onInput=${(/** @type {any} */ event) => type(event.target.value)}
      />
    </label>
    <label>
      <span>Status</span>
      <select
        disabled=${typed.trim() !== ''}
        title=${typed.trim() === '' ? undefined : 'A search by ID covers all statuses'}
        onChange=${(/** @type {any} */ event) => {
          location.hash = hrefTo('submissions', undefined, { status: event.target.value });
        }}
      >
        <option value="" selected=${status === ''}>all</option>
        ${STATUSES.map((name) => html`<option key=${name} value=${name} selected=${name === status}>${name}</option>`)}
      </select>
    </label>
    <button type="button" onClick=${reload}>Refresh</button>
  </form>`;
}

/** @param {{ status: string, prefix: string, cursor: string }} props */
function Nothing({ status, prefix, cursor }) {
  if (cursor)
    return html`<${Empty} title="No more submissions."><p><a href=${hrefTo('submissions', undefined, { status, q: prefix })}>First page</a></p><//>`;
  if (prefix)
    return html`<${Empty} title=${`No tracked ID begins with ${prefix}.`}>
      <p>The search compares the beginning of each ID and is case-sensitive.</p>
      <${TrackHint} />
    <//>`;
  if (status)
    return html`<${Empty} title=${`No submission is ${status}.`}><p><a href=${hrefTo('submissions')}>Show all</a></p><//>`;
  return html`<${Empty} title="No submissions tracked yet."><${TrackHint} /><//>`;
}
