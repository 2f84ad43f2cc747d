import { between, count, duration, relativeTime } from '../parts/format.js';
import { html } from '../parts/html.js';
import { PollDot } from '../parts/poll-dot.js';
import { OPEN_STATUSES } from './submission-table.js';

/** @import { Delivery, SubmissionWithHistory } from '../../../client/api.ts' */

/**
 * What happened to a submission, in one sentence.
 * @param {SubmissionWithHistory} one @param {readonly Delivery[]} deliveries of its events
 * @param {number} now epoch milliseconds
 */
export function sentenceOf(one, deliveries, now) {
  const since = duration((now - Date.parse(one.tracked_at)) / 1_000);
  const requests = one.polls === 1 ? '1 request' : `${count(one.polls)} requests`;
  if (OPEN_STATUSES.includes(one.status)) {
    const next =
      one.next_poll_at === null ? '' : `; next poll ${relativeTime(one.next_poll_at, now)}`;
    /** @type {Record<string, string>} */
    const states = {
      tracking: `Tracked ${since} ago, not yet seen by the upstream`,
      pending: `Pending, tracked ${since} ago`,
      failing: `Failing: ${one.error ?? 'the upstream reports an error'}, tracked ${since} ago`,
    };
    return `${states[one.status]}, with ${requests} so far${next}.`;
  }
  const end = endOf(one);
  const after = end === undefined ? '' : ` after ${between(one.tracked_at, end)}`;
  const about = one.finality_source === 'estimate' ? 'about ' : '';
  const lag =
    one.finalized_at === null || one.finality_at === null
      ? ''
      : `; detection lag ${about}${between(one.finality_at, one.finalized_at)}`;
  const block = one.status === 'finalized' ? (one.data?.block_number ?? undefined) : undefined;
  const place = block === undefined ? '' : ` in block ${grouped(block)}`;
  const chain =
    one.chain === 'confirmed' || one.chain === 'contradicted' ? `, ${one.chain} by the chain` : '';
  const error = one.error ? `: ${one.error}` : '';
  const arrived = deliveries.filter(({ state }) => state === 'delivered').length;
  const delivered =
    deliveries.length === 0
      ? ''
      : `; ${count(arrived)} of ${count(deliveries.length)} deliveries arrived`;
  const status = `${one.status.charAt(0).toUpperCase()}${one.status.slice(1)}`;
  return `${status}${after}${place}${chain}${error}${lag}; ${requests}${delivered}.`;
}

/** The end of the tracking; undefined while it is open. @param {SubmissionWithHistory} one */
function endOf({ status, finalized_at, history }) {
  if (OPEN_STATUSES.includes(status)) return undefined;
  return finalized_at ?? history.findLast((entry) => entry.previous_status !== entry.status)?.at;
}

/** Integers of five digits and more in groups of three. @param {unknown} value */
export function grouped(value) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return /^[1-9]\d{4,79}$/.test(text) ? BigInt(text).toLocaleString('en') : text;
}

/** The least share of the width for a status, so that a short one stays visible. */
const LEAST = 0.004;

/**
 * The time from tracking to the last delivery, to scale, with a legend: statuses, outages,
 * deliveries, and the polls that the server still knows. The history has the same as a text.
 * @param {{ one: SubmissionWithHistory, deliveries: readonly Delivery[], now: number }} props
 */
export function Strip({ one, deliveries, now }) {
  const begin = Date.parse(one.tracked_at);
  const end = Date.parse(endOf(one) ?? new Date(now).toISOString());
  const ended = deliveries.flatMap(({ ended_at }) =>
    ended_at === null ? [] : [Date.parse(ended_at)],
  );
  // A delivery that arrived much later would leave no space for the rest.
  const last = Math.max(end, ...ended.filter((at) => at - end < (end - begin) / 2));
  const span = Math.max(1, last - begin);
  const place = (/** @type {number} */ from, /** @type {number} */ to) => {
    const start = Math.min(1, Math.max(0, (from - begin) / span));
    const width = Math.max(LEAST, Math.min(1, (to - begin) / span) - start);
    return { left: `${100 * start}%`, width: `${100 * width}%` };
  };
  const { delays } = one;
  const history = one.history.filter(({ at }) => Date.parse(at) < end);
  const marks = deliveries.filter(({ ended_at }) => ended_at && Date.parse(ended_at) <= last);
  const keys = [
    ...new Set(history.map(({ status }) => status)),
    ...(delays.length > 0 ? ['delay'] : []),
    ...new Set(marks.map(({ state }) => `mark ${state}`)),
  ];
  const polls = one.recent_polls.filter(({ at }) => {
    const ms = Date.parse(at);
    return ms >= begin && ms <= last;
  });
  const shown = polls.length < one.polls ? `the newest ${count(polls.length)} polls` : 'polls';
  const name = OPEN_STATUSES.includes(one.status) ? 'now' : one.status;
  return html`<div class="strip" aria-hidden="true">
    <div class="track">
      ${history.map(({ seq, at, status }, index) => {
        const until = Date.parse(history[index + 1]?.at ?? new Date(end).toISOString());
        return html`<span key=${seq} class=${status} style=${place(Date.parse(at), until)} title=${`${status} for ${duration((until - Date.parse(at)) / 1_000)}`}></span>`;
      })}
      ${delays.map(
        ({ began_at, ended_at, reason }) =>
          html`<span key=${began_at} class="delay" style=${place(Date.parse(began_at), ended_at === null ? now : Date.parse(ended_at))} title=${reason}></span>`,
      )}
      ${marks.map(({ id, state, ended_at }) => {
        const at = Date.parse(ended_at ?? '');
        return html`<span key=${id} class=${`mark ${state}`} style=${place(at, at)} title=${`delivery ${id} ${state}`}></span>`;
      })}
      ${polls.map((poll) => html`<${PollDot} poll=${poll} left=${place(Date.parse(poll.at), last).left} />`)}
    </div>
    <div class="ends muted"><span>tracked</span><span>${name}${` ${duration((end - begin) / 1_000)}`}</span></div>
    <div class="keys muted">
      ${keys.map((key) => html`<span key=${key} class=${`key ${key}`}>${key.replace('mark ', '').replace('dead', 'dead letter')}</span>`)}
      ${polls.length > 0 && html`<span class="dot pending">${shown}</span>`}
    </div>
  </div>`;
}
