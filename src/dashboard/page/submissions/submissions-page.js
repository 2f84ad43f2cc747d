import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, messageOf } from '../data/api.js';
import { mayChangeSubmissions, useDashboard, useFeed, useLoad } from '../data/context.js';
import { submissionOf } from '../data/feed.js';
import { UnknownFilters } from '../parts/filters.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Empty, Loadable, Time } from '../parts/parts.js';
import { Pager } from '../parts/table.js';
import { BulkActions, SelectMatches } from './bulk-actions.js';
import { describe, FilterForm, filterOf, hrefOf, queryOf, readQuery } from './filters.js';
import { SelectAll, SubmissionTable, TrackHint } from './submission-table.js';

/** @import { Submission, SubmissionPage } from '../../../client/api.ts' */

const PER_PAGE = 50;
/**
 * Limit of requests for one page of results: each response examines a bounded number of
 * submissions.
 */
const MAX_REQUESTS = 20;

/** @typedef {import('./filters.js').Filters} Filters */
/** @typedef {import('./submission-table.js').Listed} Listed */
/** @typedef {Omit<SubmissionPage, 'submissions'> & { submissions: readonly Listed[], isPart: boolean }} Page `isPart`: it is short although more may follow */

/**
 * The list of all submissions that match the filters in the URL. @param {{ query: URLSearchParams
 * }} props
 */
export function SubmissionsPage({ query }) {
  const { filters, cursor, unknown } = readQuery(query);
  const hasAny = filters.length > 0 || unknown.length > 0;
  if (unknown.length > 0)
    return html`<h1 tabindex="-1">Submissions</h1>
      <${UnknownFilters} names=${unknown} href=${hrefOf(filters)} />`;
  return html`<h1 tabindex="-1">Submissions</h1>
    <${List} filters=${filters} cursor=${cursor} hasAny=${hasAny} />`;
}

/** @param {{ filters: Filters, cursor: string, hasAny: boolean }} props */
function List({ filters, cursor, hasAny }) {
  const { api, session } = useDashboard();
  const href = hrefOf(filters, cursor);
  const loaded = useLoad((signal) => loadPage(api, { filters, cursor, signal }), href);
  const [reloads, setReloads] = useState(0);
  const reload = () => {
    loaded.reload();
    setReloads(reloads + 1);
  };
  useFeed(({ events, isWhole }) => {
    if (!isWhole) reload();
    else if (events.some(submissionOf)) loaded.setData((page) => withEvents(page, events));
  });
  const maySelect = mayChangeSubmissions(session);
  const errors = loaded.error instanceof ApiError ? loaded.error.byField : new Map();
  const key = hrefOf(filters);
  const rows = loaded.data?.submissions ?? [];
  const [chosen, setChosen] = useState(/** @type {readonly Listed[]} */ ([]));
  useEffect(() => setChosen([]), [key]);
  const shown = new Map(rows.map((one) => [one.submission_id, one]));
  const selected = chosen.map((one) => shown.get(one.submission_id) ?? one);

  return html`<${FilterForm} filters=${filters} hasAny=${hasAny} errors=${errors} reload=${reload} />
    ${!loaded.error && html`<${Count} key=${key} filters=${filters} version=${reloads} />`}
    ${
      maySelect &&
      html`<${BulkActions} key=${key} submissions=${selected} select=${setChosen} onDone=${reload}>
        ${rows.length > 0 && html`<${SelectAll} rows=${rows} selected=${selected} select=${setChosen} />`}
        ${
          (cursor !== '' || (loaded.data && loaded.data.next_cursor !== null)) &&
          html`<${SelectMatches} load=${(/** @type {number} */ limit) => loadMatches(api, filters, limit)} select=${setChosen} />`
        }
      <//>`
    }
    <${Loadable} loaded=${loaded}>
      ${(/** @type {Page} */ page) => html`
        ${
          page.submissions.length > 0
            ? html`<${SubmissionTable}
                submissions=${page.submissions}
                isLoading=${loaded.isLoading}
                caption=${captionOf(filters)}
                selected=${maySelect ? selected : undefined}
                select=${setChosen}
              />`
            : page.next_cursor === null && html`<${Nothing} filters=${filters} cursor=${cursor} />`
        }
        ${page.isPart && html`<p class="state muted">Searched ${page.examined_to === null ? 'a part of the ids' : html`back to <${Time} at=${page.examined_to} />`}: ${page.submissions.length} found so far.</p>`}
        <${Pager}
          key=${key}
          cursor=${cursor}
          next=${page.next_cursor}
          to=${(/** @type {string | undefined} */ place) => hrefOf(filters, place)}
          nextLabel=${page.isPart ? 'Continue the search' : undefined}
        />
      `}
    <//>`;
}

/**
 * @param {import('../data/api.js').Api} api @param {{ filters: Filters, cursor: string, signal:
 * AbortSignal }} of @returns {Promise<Page>}
 */
async function loadPage(api, { filters, cursor, signal }) {
  /** @type {Submission[]} */
  const submissions = [];
  for (let [place, requests] = [cursor, 1]; ; requests++) {
    const query = queryOf(filters, place);
    query.set('limit', String(PER_PAGE - submissions.length));
    const page = await api.get(`v1/submissions?${query}`, { signal });
    submissions.push(...page.submissions);
    const isEnd = page.next_cursor === null || submissions.length >= PER_PAGE;
    if (isEnd || requests === MAX_REQUESTS) return { ...page, submissions, isPart: !isEnd };
    place = page.next_cursor;
  }
}

/**
 * The matches of all pages, up to a limit. @param {import('../data/api.js').Api} api @param
 * {Filters} filters @param {number} limit
 */
async function loadMatches(api, filters, limit) {
  /** @type {Submission[]} */
  const submissions = [];
  for (let [place, requests] = ['', 1]; ; requests++) {
    const query = queryOf(filters, place);
    query.set('limit', String(limit - submissions.length));
    const page = await api.get(`v1/submissions?${query}`);
    submissions.push(...page.submissions);
    if (page.next_cursor === null || submissions.length >= limit || requests === MAX_REQUESTS)
      return { submissions, hasMore: page.next_cursor !== null };
    place = page.next_cursor;
  }
}

/**
 * Updates the displayed rows in place; rows never move while the user reads them.
 * @param {Page} page
 * @param {readonly import('../data/feed.js').FeedEvent[]} events
 */
function withEvents(page, events) {
  const newest = new Map(events.map(submissionOf).map((one) => [one?.submission_id, one]));
  const isShown = page.submissions.some(({ submission_id }) => newest.has(submission_id));
  if (!isShown) return page;
  const submissions = page.submissions.map((one) => {
    const changed = newest.get(one.submission_id);
    return changed ? { ...one, ...changed, polls: null } : one;
  });
  return { ...page, submissions };
}

/** @param {Filters} filters */
function captionOf(filters) {
  const has = (/** @type {string} */ start) => filters.some(([name]) => name.startsWith(start));
  const order = has('prefix') ? 'by ID' : has('ended_') ? 'the latest end first' : 'newest first';
  return `Submissions, ${order}${filters.length === 0 ? '' : `: ${describe(filters)}`}`;
}

/** @param {{ filters: Filters, cursor: string }} props */
function Nothing({ filters, cursor }) {
  if (cursor)
    return html`<${Empty} title="No more submissions."><p><a href=${hrefOf(filters)}>First page</a></p><//>`;
  if (filters.length === 0)
    return html`<${Empty} title="No submissions tracked yet."><${TrackHint} /><//>`;
  return html`<${Empty} title=${`No submission matches ${describe(filters)}.`}>
    <p><a href=${hrefOf([])}>Show all submissions</a></p>
    ${filterOf(filters, 'prefix') && html`<p>The prefix is compared with the beginning of each ID and is case-sensitive.</p>`}
    ${(filterOf(filters, 'prefix') || filterOf(filters, 'search')) && html`<${TrackHint} />`}
  <//>`;
}

/**
 * The number of submissions that match the filters. What one response does not count is counted on
 * demand. @param {{ filters: import('./filters.js').Filters, version: number }} props
 */
function Count({ filters, version }) {
  const { api } = useDashboard();
  const [isCounting, setIsCounting] = useState(false);
  const [error, setError] = useState('');
  const part = async (/** @type {string | null} */ cursor, /** @type {AbortSignal} */ signal) => {
    const body = await api.get(`v1/submission_count?${queryOf(filters, cursor)}`, { signal });
    return { count: body.count, next: body.next_cursor };
  };
  const loaded = useLoad((signal) => part(null, signal), 'count', version);
  const running = useRef(/** @type {AbortController | undefined} */ (undefined));
  useEffect(() => () => running.current?.abort(), [version]);
  const countAll = async () => {
    const controller = new AbortController();
    running.current = controller;
    setIsCounting(true);
    setError('');
    try {
      for (let next = loaded.data?.next ?? null; next !== null; ) {
        const more = await part(next, controller.signal);
        next = more.next;
        loaded.setData((before) => ({ count: before.count + more.count, next: more.next }));
      }
    } catch (thrown) {
      if (!controller.signal.aborted) setError(messageOf(thrown));
    } finally {
      setIsCounting(false);
    }
  };
  // The list shows the same error.
  if (loaded.data === undefined) return html`<p class="counted"></p>`;
  const { count: number, next } = loaded.data;
  return html`<p class="counted" role="status">
    ${next === null ? '' : 'At least '}${count(number)} ${number === 1 ? 'submission' : 'submissions'}
    ${next !== null && html` <button type="button" aria-disabled=${isCounting} onClick=${() => isCounting || countAll()}>${isCounting ? 'Counting…' : 'Count all'}</button>`}
    ${error && html` <span class="wrong">${error}</span>`}
  </p>`;
}
