import { useEffect, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { mayChangeSubmissions, useDashboard, useLive, useLoad } from '../data/context.js';
import { submissionOf } from '../data/feed.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Filters, filtersIn, List, useList } from '../parts/list.js';
import { Action, Empty, Time } from '../parts/parts.js';
import { hrefTo, parseRoute } from '../router.js';
import { BulkActions, SelectMatches } from './bulk-actions.js';
import { columnsOf, SelectAll, STATUSES, submissionId, TrackHint } from './submission-table.js';

/** @import { Submission, SubmissionPage } from '../../../client/api.ts' */

const PER_PAGE = 50;
/**
 * Limit of requests for one page of results: each response examines a bounded number of
 * submissions.
 */
const MAX_REQUESTS = 20;
const METADATA = 'metadata.';

/** @typedef {Record<string, string>} Given filters by the names of their parameters */
/** @typedef {SubmissionPage & { isPart: boolean }} Page `isPart`: it is short although more may follow */

/** The submissions that match the filters in the URL. @param {{ query: URLSearchParams }} props */
export function SubmissionsPage({ query }) {
  const { api, session } = useDashboard();
  const list = useList('v1/submissions', {
    query,
    hrefOf: (given) => hrefTo('submissions', undefined, given),
    limit: PER_PAGE,
    load: ({ given, cursor, signal }) => loadMatches(api, given, { cursor, signal }),
  });
  const { given, cursor, loaded } = list;
  const key = JSON.stringify(given);
  /** @type {readonly Submission[]} */
  const rows = loaded.data?.submissions ?? [];
  const shown = new Map(rows.map((one) => [one.submission_id, one]));
  // Rows do not move because of new submissions.
  useLive(loaded.reload, undefined, (event) => shown.has(submissionOf(event)?.submission_id ?? ''));
  const maySelect = mayChangeSubmissions(session);
  const [chosen, setChosen] = useState(/** @type {readonly Submission[]} */ ([]));
  useEffect(() => setChosen([]), [key]);
  const selected = chosen.map((one) => shown.get(one.submission_id) ?? one);
  const isMore = cursor !== '' || (loaded.data && loaded.data.next_cursor !== null);

  return html`<h1 tabindex="-1">Submissions</h1>
    <${Filters} list=${list} label="Submissions" fields=${fieldsOf(given, list.hrefOf)} />
    ${!loaded.error && html`<${Count} key=${key} given=${given} version=${loaded.data} />`}
    ${
      maySelect &&
      html`<${BulkActions} key=${key} submissions=${selected} select=${setChosen} onDone=${loaded.reload}>
        <${SelectAll} rows=${rows} selected=${selected} select=${setChosen} />
        ${isMore && html`<${SelectMatches} load=${(/** @type {number} */ limit) => loadMatches(api, given, { limit })} select=${setChosen} />`}
      <//>`
    }
    <${List}
      list=${list}
      of="submissions"
      caption=${captionOf(given)}
      columns=${columnsOf(maySelect ? { selected, select: setChosen } : undefined)}
      keyOf=${submissionId}
      empty=${html`<${Nothing} given=${given} cursor=${cursor} />`}
      after=${(/** @type {Page} */ page) => page.isPart && html`<${Searched} page=${page} />`}
      nextLabel=${(/** @type {Page} */ page) => (page.isPart ? 'Continue the search' : undefined)}
    />`;
}

/**
 * @param {Given} given @param {(query: Record<string, string | undefined>) => string} hrefOf @returns
 * {import('../parts/list.js').FilterField[]}
 */
function fieldsOf(given, hrefOf) {
  const metadata = Object.keys(given).filter((name) => name.startsWith(METADATA));
  // A text of another form stays in the address, where the server explains it.
  const addMetadata = (/** @type {string} */ typed) => {
    const [, name, value] = /^([^=]+)=(.+)$/.exec(typed) ?? [];
    const { metadata: _, ...others } = filtersIn(parseRoute(location.hash).query);
    location.hash = hrefOf({ ...others, [name ? METADATA + name : 'metadata']: value ?? typed });
  };
  return [
    { name: 'search', label: 'Text in ids and metadata', type: 'search' },
    { name: 'status', label: 'Status', many: STATUSES },
    { name: 'prefix', label: 'ID prefix' },
    { name: 'upstream', label: 'Upstream' },
    ...metadata.map((name) => ({ name, label: `Metadata ${name.slice(METADATA.length)}` })),
    { name: 'metadata', label: 'Metadata', placeholder: 'name=value', apply: addMetadata },
    { name: 'tracked_since', label: 'Tracked since', isTime: true },
    { name: 'tracked_until', label: 'Tracked before', isTime: true },
    { name: 'ended_since', label: 'Ended since', isTime: true },
    { name: 'ended_until', label: 'Ended before', isTime: true },
  ];
}

/**
 * Requests until there are `limit` matches, or the search has examined much.
 * @param {import('../data/api.js').Api} api @param {Given} given
 * @param {{ cursor?: string, limit?: number, signal?: AbortSignal }} options
 * @returns {Promise<Page>}
 */
async function loadMatches(api, given, { cursor, limit = PER_PAGE, signal }) {
  /** @type {Submission[]} */
  const submissions = [];
  for (let [place, requests] = [cursor, 1]; ; requests++) {
    const query = { ...given, cursor: place, limit: limit - submissions.length };
    const page = await api.get(withQuery('v1/submissions', query), signal && { signal });
    submissions.push(...page.submissions);
    const isEnd = page.next_cursor === null || submissions.length >= limit;
    if (isEnd || requests === MAX_REQUESTS) return { ...page, submissions, isPart: !isEnd };
    place = page.next_cursor;
  }
}

/** @param {Given} given */
function captionOf(given) {
  const has = (/** @type {string} */ start) =>
    Object.keys(given).some((name) => name.startsWith(start));
  const order = has('prefix') ? 'by ID' : has('ended_') ? 'the latest end first' : 'newest first';
  return `Submissions, ${order}`;
}

/** How far a search came. @param {{ page: Page }} props */
function Searched({ page: { examined_to, submissions } }) {
  return html`<p class="state muted">Searched ${examined_to === null ? 'a part of the ids' : html`back to <${Time} at=${examined_to} />`}: ${submissions.length} found so far.</p>`;
}

/** @param {{ given: Given, cursor: string }} props */
function Nothing({ given, cursor }) {
  if (cursor) return html`<${Empty} title="No more submissions." />`;
  if (Object.keys(given).length === 0)
    return html`<${Empty} title="No submissions tracked yet."><${TrackHint} /><//>`;
  return html`<${Empty} title="No submission matches.">
    ${given.prefix && html`<p>The prefix is compared with the beginning of each ID and is case-sensitive.</p>`}
    ${(given.prefix || given.search) && html`<${TrackHint} />`}
  <//>`;
}

/**
 * The number of submissions that match the filters. What one response does not count is counted on
 * demand. @param {{ given: Given, version: unknown }} props `version`: a change counts again
 */
function Count({ given, version }) {
  const { api } = useDashboard();
  const part = (
    /** @type {string | undefined} */ cursor,
    /** @type {AbortSignal | undefined} */ signal,
  ) => api.get(withQuery('v1/submission_count', { ...given, cursor }), signal && { signal });
  const { data } = useLoad((signal) => part(undefined, signal), 'count', version);
  const countAll = async () => {
    let all = data.count;
    for (let next = data.next_cursor; next !== null; ) {
      const more = await part(next, undefined);
      all += more.count;
      next = more.next_cursor;
    }
    return textOf(all);
  };
  // The list shows an error.
  if (data === undefined) return html`<p class="counted"></p>`;
  return html`<p class="counted" role="status">
    ${data.next_cursor === null ? textOf(data.count) : html`At least ${textOf(data.count)} <${Action} label="Count all" act=${countAll} />`}
  </p>`;
}

/** @param {number} number */
function textOf(number) {
  return `${count(number)} ${number === 1 ? 'submission' : 'submissions'}`;
}
