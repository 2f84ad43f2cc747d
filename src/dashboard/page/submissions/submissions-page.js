import { withQuery } from '../data/api.js';
import { useDashboard, useLive, useLiveData, useLoad } from '../data/context.js';
import { submissionOf } from '../data/feed.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Filters, List, useList } from '../parts/list.js';
import { Action, Empty, PageHeader, Tabs } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { COLUMNS, OPEN_STATUSES, STATUSES, submissionId, TrackHint } from './submission-table.js';

/** @import { Overview, Submission } from '../../../client/api.ts' */

export function SubmissionsPage({ query }) {
  const list = useList('v1/submissions', { query });
  const { filters, loaded } = list;
  /** @type {readonly Submission[]} */
  const rows = loaded.data?.submissions ?? [];
  const ids = new Set(rows.map(submissionId));
  // Rows do not move because of new submissions.
  useLive(loaded.reload, undefined, (event) => ids.has(submissionOf(event)?.submission_id ?? ''));
  const { overview } = useLiveData();
  const tabs = tabsOf(filters, overview.data);
  return html`<${PageHeader} title="Submissions" />
    <${Tabs} label="Submissions by state" of=${tabs} />
    <${Filters} list=${list} label="Submissions" fields=${fieldsOf(overview.data)} />
    ${!loaded.error && !tabs.some(({ isCurrent }) => isCurrent) && html`<${Count} key=${JSON.stringify(filters)} filters=${filters} version=${loaded.data} />`}
    <${List}
      list=${list}
      of="submissions"
      caption="Submissions"
      columns=${COLUMNS}
      keyOf=${submissionId}
      empty=${html`<${Empty} title="No submissions tracked yet."><${TrackHint} /><//>`}
    />`;
}

/** @param {Overview | undefined} overview @returns {import('../parts/list.js').FilterField[]} */
function fieldsOf(overview) {
  const upstreams = overview?.upstreams.map(({ name }) => name) ?? [];
  return [
    { name: 'prefix', label: 'ID prefix' },
    { name: 'status', label: 'Status', values: STATUSES },
    { name: 'chain', label: 'Chain', values: ['confirmed', 'contradicted', 'unavailable'] },
    { name: 'metadata', label: 'Metadata', hint: 'order=4711' },
    { name: 'upstream', label: 'Upstream', values: upstreams },
    { name: 'stuck', label: 'Open for too long', values: ['true'] },
    { name: 'tracked_since', label: 'Tracked since', isTime: true },
    { name: 'tracked_until', label: 'Tracked before', isTime: true },
    { name: 'ended_since', label: 'Ended since', isTime: true },
    { name: 'ended_until', label: 'Ended before', isTime: true },
  ];
}

const FAILED = ['failed', 'unknown', 'rejected', 'expired'];

/** @param {Record<string, string>} filters @param {Overview | undefined} overview */
function tabsOf(filters, overview) {
  const counts = new Map(Object.entries(overview?.submissions ?? {}));
  return [
    { label: 'All', statuses: STATUSES, status: undefined },
    { label: 'Open', statuses: OPEN_STATUSES, status: OPEN_STATUSES.join() },
    { label: 'Failed', statuses: FAILED, status: FAILED.join() },
  ].map(({ label, statuses, status }) => ({
    label,
    href: hrefTo('submissions', undefined, { status }),
    number: overview && statuses.reduce((sum, one) => sum + (counts.get(one) ?? 0), 0),
    isCurrent: JSON.stringify(filters) === JSON.stringify({ status }),
  }));
}

/**
 * The number of submissions that match the filters. What one response does not count is counted on
 * demand. @param {{ filters: Record<string, string>, version: unknown }} props `version`: a change
 * counts again
 */
function Count({ filters, version }) {
  const { api } = useDashboard();
  const path = (cursor) => withQuery('v1/submission_count', { ...filters, cursor });
  const { data } = useLoad((signal) => api.get(path(undefined), { signal }), 'count', version);
  const countAll = async () => {
    let all = data.count;
    for (let next = data.next_cursor; next !== null; ) {
      const more = await api.get(path(next));
      all += more.count;
      next = more.next_cursor;
    }
    return textOf(all);
  };
  // The list shows an error.
  if (data === undefined) return null;
  return html`<div class="muted" role="status">
    ${data.next_cursor === null ? textOf(data.count) : html`At least ${textOf(data.count)} <${Action} label="Count all" act=${countAll} />`}
  </div>`;
}

function textOf(number) {
  return `${count(number)} ${number === 1 ? 'submission' : 'submissions'}`;
}
