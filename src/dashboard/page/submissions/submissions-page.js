import { useEffect, useState } from 'preact/hooks';
import { withQuery } from '../data/api.js';
import { mayChangeSubmissions, useDashboard, useLive, useLoad } from '../data/context.js';
import { submissionOf } from '../data/feed.js';
import { useLiveData } from '../data/live.js';
import { useStored } from '../data/stored.js';
import { Drop } from '../parts/drop.js';
import { Filters } from '../parts/filters.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Icon } from '../parts/icon.js';
import { List, useList } from '../parts/list.js';
import { Action, Command, Empty, PageHeader } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { BulkActions, SelectMatches } from './bulk-actions.js';
import { SubmissionDetails } from './submission-page.js';
import {
  COLUMNS,
  DEFAULT_COLUMNS,
  firstColumn,
  OPEN_STATUSES,
  SelectAll,
  STATUSES,
  submissionId,
  TrackHint,
} from './submission-table.js';

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

  const [columns, setColumns] = useStored('columns', DEFAULT_COLUMNS);
  const [open, setOpen] = useState(/** @type {string | undefined} */ (undefined));
  const { overview } = useLiveData();
  const numbers = { late: useNumber(lateQuery()), lastHour: useNumber(lastHourQuery()) };

  return html`<${PageHeader} title="Submissions" />
    <${Filters} list=${list} label="Submissions" fields=${fieldsOf(given, overview.data)} search=${SEARCH} presets=${presetsOf(given, overview.data, numbers)}>
      <${ColumnChoice} chosen=${columns} choose=${setColumns} />
    <//>
    <div class=${open ? 'beside' : ''}>
      <div>
        <div class="bar list-bar">
          ${maySelect && html`<${SelectAll} rows=${rows} selected=${selected} select=${setChosen} />`}
          ${!loaded.error && html`<${Count} key=${key} given=${given} version=${loaded.data} />`}
          ${maySelect && isMore && html`<${SelectMatches} load=${(/** @type {number} */ limit) => loadMatches(api, given, { limit })} select=${setChosen} />`}
          ${!open && html`<span class="hint"><kbd>↑</kbd> <kbd>↓</kbd> move, <kbd>Enter</kbd> opens a page, a click shows it here</span>`}
        </div>
        <${List}
          list=${list}
          of="submissions"
          caption="Submissions"
          hidesCaption
          columns=${[firstColumn(maySelect ? { selected, select: setChosen } : undefined), ...COLUMNS.filter(({ title }) => columns.includes(title))]}
          keyOf=${submissionId}
          current=${open}
          onRow=${(/** @type {Submission} */ one) => (isWide() ? setOpen(one.submission_id) : location.assign(hrefTo('submissions', one.submission_id)))}
          empty=${html`<${Nothing} given=${given} cursor=${cursor} />`}
          after=${(/** @type {Page} */ page) => page.isPart && html`<${Searched} page=${page} />`}
          nextLabel=${(/** @type {Page} */ page) => (page.isPart ? 'Continue the search' : undefined)}
        />
        ${maySelect && html`<${BulkActions} key=${key} submissions=${selected} select=${setChosen} onDone=${loaded.reload} />`}
      </div>
      ${open && html`<${Panel} key=${open} id=${open} onClose=${() => setOpen(undefined)} />`}
    </div>`;
}

/** A panel beside the list needs this much space; elsewhere a row opens the page. */
function isWide() {
  return window.matchMedia('(min-width: 1180px)').matches;
}

/** A submission beside the list. @param {{ id: string, onClose: () => void }} props */
function Panel({ id, onClose }) {
  useEffect(() => {
    // The focus may be in the list. In a dialog, Escape closes the dialog.
    const onKeyDown = (/** @type {KeyboardEvent} */ { key, target }) => {
      const isInDialog = target instanceof Element && target.closest('dialog');
      if (key === 'Escape' && !isInDialog) onClose();
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
  return html`<aside class="beside-panel" aria-label="Submission">
    <button type="button" class="plain" aria-label="Close" onClick=${onClose}><${Icon} name="x" /></button>
    <${SubmissionDetails} id=${id} isPanel>
      <a class="button" href=${hrefTo('submissions', id)}><${Icon} name="link" />Open</a>
    <//>
  </aside>`;
}

/** @param {{ chosen: readonly string[], choose: (titles: readonly string[]) => void }} props */
function ColumnChoice({ chosen, choose }) {
  const [isOpen, setIsOpen] = useState(false);
  const toggle = (/** @type {string} */ title) =>
    choose(chosen.includes(title) ? chosen.filter((one) => one !== title) : [...chosen, title]);
  return html`<${Drop} label=${html`<${Icon} name="columns" />`} name="Columns" className="plain" isAtEnd isOpen=${isOpen} setOpen=${setIsOpen}>
    ${COLUMNS.map(
      ({ title }) => html`<label key=${title}>
        <input type="checkbox" checked=${chosen.includes(title)} onChange=${() => toggle(title)} />${title}
      </label>`,
    )}
  <//>`;
}

/** @type {import('../parts/filters.js').Search} */
const SEARCH = {
  placeholder: 'id, status:failing, order=4711',
  fieldOf: () => 'prefix',
  hasMetadata: true,
};

/**
 * @param {Given} given @param {import('../../../client/api.ts').Overview | undefined} overview
 * @returns {import('../parts/filters.js').FilterField[]}
 */
function fieldsOf(given, overview) {
  const metadata = Object.keys(given).filter((name) => name.startsWith(METADATA));
  return [
    { name: 'status', label: 'Status', many: STATUSES, counts: overview?.submissions },
    {
      name: 'upstream',
      label: 'Upstream',
      values: overview?.upstreams.map(({ name }) => name) ?? [],
    },
    { name: 'prefix', label: 'ID prefix', hint: 'Case-sensitive, unless it is a UUID.' },
    {
      name: 'metadata',
      label: 'Metadata',
      hint: 'As JSON: {"order":4711}. Search for order=4711 instead.',
    },
    ...metadata.map((name) => ({ name, label: name.slice(METADATA.length) })),
    { name: 'tracked_since', label: 'Tracked since', isTime: true },
    { name: 'tracked_until', label: 'Tracked before', isTime: true },
    { name: 'ended_since', label: 'Ended since', isTime: true },
    { name: 'ended_until', label: 'Ended before', isTime: true },
  ];
}

const HOUR_MS = 3_600_000;
/** An open submission that is older is late. */
const LATE_MS = 300_000;
const MINUTE_MS = 60_000;
const FAILED = ['failed', 'unknown', 'rejected', 'expired'];

/** Whole minutes, so that the links change rarely. @param {number} ms */
function ago(ms) {
  return new Date(Math.floor((Date.now() - ms) / MINUTE_MS) * MINUTE_MS).toISOString();
}

function lateQuery() {
  return { status: OPEN_STATUSES.join(), tracked_until: ago(LATE_MS) };
}

function lastHourQuery() {
  return { tracked_since: ago(HOUR_MS) };
}

/**
 * The number of matches; undefined until it is known, and if one response does not count them all.
 * @param {Given} query
 */
function useNumber(query) {
  const { api } = useDashboard();
  const path = withQuery('v1/submission_count', query);
  const { data } = useLoad((signal) => api.get(path, { signal }), 'number', path);
  return data?.next_cursor === null ? data.count : undefined;
}

/**
 * @param {Given} given @param {import('../../../client/api.ts').Overview | undefined} overview
 * @param {{ late: number | undefined, lastHour: number | undefined }} numbers
 * @returns {import('../parts/filters.js').Preset[]}
 */
function presetsOf(given, overview, { late, lastHour }) {
  const names = Object.keys(given).join();
  const sum = (/** @type {readonly string[]} */ statuses) =>
    overview &&
    statuses.reduce(
      (sum, status) => sum + (new Map(Object.entries(overview.submissions)).get(status) ?? 0),
      0,
    );
  const [open, failed] = [OPEN_STATUSES.join(), FAILED.join()];
  const byStatus = (/** @type {string} */ status) => given.status === status && names === 'status';
  return [
    { label: 'All', query: {}, number: sum(STATUSES), isCurrent: names === '' },
    {
      label: 'Open',
      query: { status: open },
      number: sum(OPEN_STATUSES),
      isCurrent: byStatus(open),
    },
    {
      label: 'Late',
      query: lateQuery(),
      number: late,
      isCurrent: given.status === open && names === 'status,tracked_until',
    },
    {
      label: 'Failed',
      query: { status: failed },
      number: sum(FAILED),
      isCurrent: byStatus(failed),
    },
    {
      label: 'Last hour',
      query: lastHourQuery(),
      number: lastHour,
      isCurrent: names === 'tracked_since',
    },
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

/** @param {{ page: Page }} props */
function Searched({ page: { submissions } }) {
  return html`<p class="state muted">A part was searched: ${submissions.length} found so far.</p>`;
}

/** @param {{ given: Given, cursor: string }} props */
function Nothing({ given, cursor }) {
  if (cursor) return html`<${Empty} title="No more submissions." />`;
  if (Object.keys(given).length === 0)
    return html`<${Empty} title="No submissions tracked yet."><${TrackHint} /><//>`;
  return html`<${Empty} title="No submission matches.">
    ${given.prefix && html`<p>No id begins with ${given.prefix}.</p>`}
    ${
      given.prefix
        ? html`<${TrackHint} />`
        : html`<p>The newest submissions in a terminal:</p><${Command}>npx dawatch list<//>`
    }
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
  if (data === undefined) return null;
  return html`<span role="status">
    ${data.next_cursor === null ? textOf(data.count) : html`At least ${textOf(data.count)} <${Action} label="Count all" act=${countAll} />`}
  </span>`;
}

/** @param {number} number */
function textOf(number) {
  return `${count(number)} ${number === 1 ? 'submission' : 'submissions'}`;
}
