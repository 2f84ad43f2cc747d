import { useDashboard, useFeed } from '../data/context.js';
import { useLoad, useThrottled, useWhileVisible } from '../data/use-load.js';
import { html } from '../parts/html.js';
import { Empty, Loadable, Time } from '../parts/parts.js';
import { TrackHint } from '../submissions/submission-table.js';
import { Plots } from './plots.js';
import {
  DeliveryStats,
  LatestEvents,
  OldestOpen,
  RequestStats,
  StatusCounts,
  Upstreams,
} from './sections.js';

/** Minimum time between reloads of the overview, however many events arrive. */
const LEAST_MS = 2_000;
/** Reload interval: ages and budgets change without an event. */
const IDLE_MS = 10_000;

export function OverviewPage() {
  const { api } = useDashboard();
  const loaded = useLoad((signal) => api.get('v1/overview', { signal }), 'v1/overview');
  const refresh = useThrottled(loaded.refresh, LEAST_MS);
  useFeed(refresh);
  useWhileVisible(refresh, IDLE_MS);

  return html`<h1 tabindex="-1">Overview</h1>
    <${Loadable} loaded=${loaded}>
      ${(/** @type {any} */ overview) => html`
        ${isUnused(overview) && html`<${Empty} title="No submissions tracked yet."><${TrackHint} /><//>`}
        <${StatusCounts} submissions=${overview.submissions} />
        <${Plots} minutes=${overview.per_minute} lastHour=${overview.last_hour} />
        <div class="columns">
          <${RequestStats} lastHour=${overview.last_hour} />
          <${DeliveryStats} deliveries=${overview.deliveries} />
          <${Upstreams} upstreams=${overview.upstreams} readers=${overview.readers} workers=${overview.workers} />
          <${LatestEvents} />
        </div>
        <${OldestOpen} oldest=${overview.oldest_open} />
        <p class="muted">As of <${Time} at=${overview.at} />, server time.</p>
      `}
    <//>`;
}

/** @param {{ submissions: Record<string, number> }} overview */
function isUnused({ submissions }) {
  return Object.values(submissions).every((number) => number === 0);
}
