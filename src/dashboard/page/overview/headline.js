import { count, duration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { OPEN_STATUSES } from '../submissions/submission-table.js';

/** @import { Alert, Overview } from '../../../client/api.ts' */

/**
 * Whether everything is all right, in one sentence.
 * @param {Overview} overview @param {readonly Alert[]} alerts the firing ones
 * @returns {{ state: 'good' | 'bad', text: string }}
 */
export function headlineOf({ at, upstreams, submissions, total }, alerts) {
  const counts = new Map(Object.entries(submissions));
  const open = OPEN_STATUSES.reduce((sum, status) => sum + (counts.get(status) ?? 0), 0);
  const failing = upstreams.filter(({ state }) => state !== 'up');
  if (failing.length > 0) {
    const waiting = failing.reduce((sum, { tracked }) => sum + tracked, 0);
    const begins = alerts
      .filter(
        ({ rule, subject }) =>
          /^(?:upstream_down|credentials_refused)$/.test(rule) &&
          failing.some(({ name }) => name === subject),
      )
      .map(({ since }) => Date.parse(since));
    const since =
      begins.length > 0 ? ` for ${duration((Date.parse(at) - Math.min(...begins)) / 1_000)}` : '';
    const isRefused = failing.every(({ state }) => state === 'unauthorized');
    const what = isRefused
      ? `${upstreamsOf(failing.length, 'refuses', 'refuse')} the API key`
      : `${upstreamsOf(failing.length, 'is', 'are')} down`;
    return {
      state: 'bad',
      text: `${what}${since}; ${submissionsOf(waiting)} ${waiting === 1 ? 'waits' : 'wait'}.`,
    };
  }
  const unhandled = alerts.filter(({ muted_until }) => muted_until === null);
  const now = `${submissionsOf(open)} ${open === 1 ? 'is' : 'are'} open, ${count(total.finalized)} became final in the last hour.`;
  if (unhandled.length === 0) return { state: 'good', text: `All healthy: ${now}` };
  const firing =
    unhandled.length === 1 ? '1 alert is firing' : `${count(unhandled.length)} alerts are firing`;
  return { state: 'bad', text: `${firing}; ${now}` };
}

function upstreamsOf(number, one, many) {
  return number === 1 ? `1 upstream ${one}` : `${count(number)} upstreams ${many}`;
}

function submissionsOf(number) {
  return number === 1 ? '1 submission' : `${count(number)} submissions`;
}

/** @param {{ overview: Overview, alerts: readonly Alert[] }} props */
export function Headline({ overview, alerts }) {
  const { state, text } = headlineOf(overview, alerts);
  return html`<p class=${`headline ${state}`}>${text}</p>`;
}
