import { between, count, duration, relativeTime } from '../parts/format.js';
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
  const end =
    one.finalized_at ?? one.history.findLast((entry) => entry.previous_status !== entry.status)?.at;
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

/** Integers of five digits and more in groups of three. */
export function grouped(value) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return /^[1-9]\d{4,79}$/.test(text) ? BigInt(text).toLocaleString('en') : text;
}
