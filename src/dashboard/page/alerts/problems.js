import { useEffect, useRef } from 'preact/hooks';
import { isAdmin, reloadAll, useDashboard, useFeedState, useLiveData } from '../data/context.js';
import { fromUtcText, invalidField, TextField, textOf, toUtcText } from '../parts/form.js';
import { count } from '../parts/format.js';
import { html, Icon } from '../parts/html.js';
import { Action, Loadable, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';

/** @import { Alert } from '../../../client/api.ts' */

/**
 * What to do, by the rule.
 * @type {Record<Alert['rule'] | 'webhook_failing' | 'channel_failing', string>}
 */
export const REMEDIES = {
  upstream_down: 'Polls resume by themselves when it responds.',
  credentials_refused: 'Set a valid api_key and restart.',
  upstream_paused: 'Compare the budget with what the upstream grants.',
  stuck: 'Look at what the upstream reports about them.',
  contradicted: 'Compare the hashes with the chain.',
  failures: 'Look at the errors that the upstream reports.',
  webhook_failing: 'Repair the receiver. Deliveries are retried for three days.',
  channel_failing: 'Repair the receiver or the settings of the channel.',
  backlog: 'Look at the responses of the receiver.',
  dead_letters: 'Repair the receiver, then replay them.',
  webhook_disabled: 'Repair the receiver, then enable the webhook and replay its dead letters.',
  wal_size: 'End the program that reads the ledger.',
  disk_low: 'Free space on the disk.',
  ledger_not_writable: 'Free space on the disk. The server resumes by itself.',
  redis_down: 'Check Redis, its password and its address.',
  no_workers: 'Start the workers. Check them with dawatch worker --check.',
  chain_node: 'Check the node. Finality is estimated meanwhile.',
};

/** What is wrong, since when, and what to do: the firing alerts, those that are muted last. */
export function Problems() {
  const { session } = useDashboard();
  const { alerts: loaded } = useLiveData();
  const isKnown = useFeedState() !== 'lost' && !loaded.error;
  return html`<section class="problems" aria-label="Problems">
    <${Loadable} loaded=${loaded}>
      ${(/** @type {{ alerts: readonly Alert[] }} */ { alerts }) => html`
        <p class=${`headline ${isKnown ? (alerts.length > 0 ? 'bad' : 'good') : ''}`}>${isKnown ? headlineOf(alerts) : 'Unknown: the server cannot be reached'}</p>
        <ul>
          ${alerts.toSorted((a, b) => Number(a.muted_until !== null) - Number(b.muted_until !== null)).map((alert) => html`<${Problem} key=${alert.id} alert=${alert} mayMute=${isAdmin(session)} />`)}
        </ul>
      `}
    <//>
  </section>`;
}

/** @param {readonly Alert[]} alerts */
export function headlineOf(alerts) {
  const muted = alerts.filter(({ muted_until }) => muted_until !== null).length;
  if (alerts.length === 0) return 'Everything works';
  const problems = alerts.length === 1 ? '1 problem' : `${count(alerts.length)} problems`;
  return muted === 0 ? problems : `${problems}, ${count(muted)} of them muted`;
}

/** @param {{ alert: Alert, mayMute: boolean }} props */
function Problem({ alert, mayMute }) {
  const { id, rule, subject, summary, since, muted_until: mutedUntil } = alert;
  return html`<li class=${mutedUntil === null ? '' : 'muted'}>
    <a href=${pageOf(alert)}>${summary}</a>
    <span>
      <span class="muted">${id > 0 ? html`<a href=${hrefTo('alerts', String(id))}>began <${Time} at=${since} /></a>` : html`began <${Time} at=${since} />`}${mutedUntil !== null && html`, mute ends <${Time} at=${mutedUntil} />`}.</span>
      ${' '}${REMEDIES[rule]}
    </span>
    ${
      // An alert without an id is not in the ledger.
      mayMute &&
      id > 0 &&
      mutedUntil === null &&
      html`<${MuteAction} label="Mute" name=${`Mute: ${summary}`} rule=${rule} subject=${subject} />`
    }
  </li>`;
}

/** The newest firing alert that nobody has muted, and the number of others, as one line. */
export function AlertNotice({ isHidden }) {
  const { announce } = useDashboard();
  const { data } = useLiveData().alerts;
  /** @type {readonly Alert[]} */
  const loud = (data?.alerts ?? []).filter(({ muted_until }) => muted_until === null);
  const announced = useRef(/** @type {Set<number>} */ (new Set()));
  useEffect(() => {
    const added = loud.find(({ id }) => !announced.current.has(id));
    if (added) announce(`Alert: ${added.summary}`);
    announced.current = new Set(loud.map(({ id }) => id));
  }, [data]);

  const [alert, ...others] = loud;
  if (!alert || isHidden) return null;
  return html`<section class="notice" aria-label="Alerts">
    <${Icon} name="warning" />
    <a class="text" href=${pageOf(alert)} title=${alert.summary}>${alert.summary}</a>
    <span class="since muted">began <${Time} at=${alert.since} /></span>
    ${others.length > 0 && html`<a class="all" href=${hrefTo('alerts')}>${count(others.length)} more</a>`}
  </section>`;
}

/**
 * The page about an alert. Its link may name another address of this server. @param {Alert} alert
 */
export function pageOf({ link }) {
  return link.slice(link.indexOf('#'));
}

const MIN_MS = 60_000;
const HOUR_MS = 60 * MIN_MS;

/** Mutes an alert, or with null all alerts, until a time. */
export function MuteAction({ label, name = label, rule, subject }) {
  const { api } = useDashboard();
  const mute = async (form) => {
    const until = fromUtcText(textOf(form, 'until'));
    if (until === '') throw invalidField('until', 'write a date and a time like 2026-01-31 14:00');
    await api.post('v1/mutes', { rule, subject, until, reason: textOf(form, 'reason') });
    reloadAll();
    return 'The alerts are muted.';
  };
  const until = toUtcText(Math.floor(Date.now() / MIN_MS) * MIN_MS + HOUR_MS);
  return html`<${Action} label=${label} name=${name} title=${name} submit="Mute" fields=${['until', 'reason']} act=${mute}>
    ${(errorOf) => html`
      <p class="muted">Alerts that begin meanwhile are recorded and not sent. Those that still fire at the end are sent then.</p>
      <${TextField} label="Until" name="until" value=${until} hint="UTC, like 2026-01-31 14:00" error=${errorOf('until')} />
      <${TextField} label="Reason" name="reason" error=${errorOf('reason')} />
    `}
  <//>`;
}
