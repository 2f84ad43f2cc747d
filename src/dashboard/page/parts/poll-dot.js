import { absoluteTime, duration } from './format.js';
import { html } from './html.js';

/** @import { PollResult, RecentPoll } from '../../../client/api.ts' */

/** What a poll means for its submission. @param {PollResult} result */
export function meaningOf(result) {
  if (result === 'finalized') return 'final';
  return result === 'pending' || result === 'not_found' ? 'pending' : 'error';
}

/**
 * A poll on a line of times. @param {{ poll: RecentPoll, left: string }} props `left`: a percentage
 */
export function PollDot({ poll: { at, duration_ms, result }, left }) {
  const title = `${result.replace('_', ' ')} after ${duration(duration_ms / 1_000)}, ${absoluteTime(at)}`;
  return html`<span class=${`poll ${meaningOf(result)}`} style=${{ left }} title=${title}></span>`;
}
