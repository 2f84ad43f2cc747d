import { useEffect, useRef } from 'preact/hooks';
import { useDashboard, useFeed } from '../data/context.js';
import { reloadAll, useLoad, useThrottled, useWhileVisible } from '../data/use-load.js';
import { html } from '../parts/html.js';
import { Action, Time } from '../parts/parts.js';
import { hrefTo } from '../router.js';
import { isAdmin } from '../session/access.js';

/**
 * Acknowledgements and mutes by other users cause no events, so they are loaded at this interval.
 */
const REFRESH_MS = 30_000;
const RELOAD_EVERY_MS = 1_000;
/** Further alerts are only counted. */
const SHOWN = 100;

/**
 * @typedef {{ id: number, rule: string, subject: string, summary: string, since: string, link:
 * string, acknowledged: { at: string, by: string } | null, muted_until: string | null }} Alert
 */

/** The firing alerts, above every page. */
export function AlertBanner() {
  const { api, announce } = useDashboard();
  const path = `v1/alerts?limit=${SHOWN}`;
  const { data, reload, refresh } = useLoad((signal) => api.get(path, { signal }), path);
  useWhileVisible(refresh, REFRESH_MS);
  const reloadSoon = useThrottled(reload, RELOAD_EVERY_MS);
  useFeed(({ events, isWhole }) => {
    if (!isWhole || events.some(({ type }) => type.startsWith('alert.'))) reloadSoon();
  });

  /** @type {Alert[]} */
  const alerts = data?.alerts ?? [];
  const unhandled = alerts.filter(
    ({ acknowledged, muted_until }) => !acknowledged && muted_until === null,
  );
  const announced = useRef(/** @type {Set<number>} */ (new Set()));
  useEffect(() => {
    const added = unhandled.find(({ id }) => !announced.current.has(id));
    if (added) announce(`Alert: ${added.summary}`);
    announced.current = new Set(unhandled.map(({ id }) => id));
  }, [data]);

  if (alerts.length === 0) return null;
  const isMore = data.next_cursor !== null;
  return html`<section class=${unhandled.length === 0 ? 'alerts handled' : 'alerts'} aria-label="Alerts">
    ${
      unhandled.length > 0 &&
      html`<ul>
        ${unhandled.map((alert) => html`<${Row} key=${alert.id} alert=${alert} />`)}
      </ul>`
    }
    ${
      (unhandled.length < alerts.length || isMore) &&
      html`<details>
        <summary>${summaryOf(alerts, { isMore })}</summary>
        <ul>
          ${alerts
            .filter((alert) => !unhandled.includes(alert))
            .map((alert) => html`<${Row} key=${alert.id} alert=${alert} />`)}
          ${isMore && html`<li><a href=${hrefTo('alerts')}>All alerts</a></li>`}
        </ul>
      </details>`
    }
  </section>`;
}

/** @param {readonly Alert[]} alerts @param {{ isMore: boolean }} list */
function summaryOf(alerts, { isMore }) {
  const acknowledged = alerts.filter((alert) => alert.acknowledged).length;
  const muted = alerts.filter((alert) => !alert.acknowledged && alert.muted_until !== null).length;
  const counts = [
    ...(acknowledged > 0 ? [`${acknowledged} acknowledged`] : []),
    ...(muted > 0 ? [`${muted} muted`] : []),
    ...(isMore ? ['and older ones'] : []),
  ];
  return counts.join(', ');
}

/** @param {{ alert: Alert }} props */
function Row({ alert }) {
  const { session } = useDashboard();
  const { summary, since, link, acknowledged, muted_until } = alert;
  // The link may name another address of this server.
  const page = link.slice(link.indexOf('#'));
  return html`<li>
    <a href=${page}>${summary}</a>
    <span class="muted">began <${Time} at=${since} /></span>
    ${acknowledged && html`<span class="muted">acknowledged by ${acknowledged.by}</span>`}
    ${muted_until !== null && html`<span class="muted">mute ends <${Time} at=${muted_until} /></span>`}
    ${isAdmin(session) && html`<${Acknowledgement} alert=${alert} />`}
  </li>`;
}

/**
 * Acknowledges an alert, or withdraws the acknowledgement. Used by the banner and the page of
 * alerts. @param {{ alert: Alert }} props
 */
export function Acknowledgement({ alert: { id, summary, acknowledged } }) {
  const { api, announce } = useDashboard();
  const change = async () => {
    if (acknowledged) await api.delete(`v1/alerts/${id}/acknowledge`);
    else await api.post(`v1/alerts/${id}/acknowledge`);
    announce(acknowledged ? 'The acknowledgement is withdrawn.' : 'The alert is acknowledged.');
    reloadAll();
    return '';
  };
  const label = acknowledged ? 'Withdraw acknowledgement' : 'Acknowledge';
  return html`<${Action} label=${label} name=${`${label}${acknowledged ? ' of' : ''}: ${summary}`} act=${change} />`;
}
