import { absoluteTime, count, duration } from '../parts/format.js';
import { html } from '../parts/html.js';

/** @import { PollResult, UpstreamPacing } from '../../../client/api.ts' */

/** The server sends the polls and heads of this time. */
const SPAN_MS = 120_000;

/** @type {Record<string, string>} */
const NAMES = { pending: 'not final yet', final: 'found final', error: 'with an error' };

/** What a poll means for its submission. @param {PollResult} result */
function meaningOf(result) {
  if (result === 'finalized') return 'final';
  return result === 'pending' || result === 'not_found' ? 'pending' : 'error';
}

/**
 * The last two minutes of an upstream, to scale: the final blocks of its chain, if a node is
 * configured, and the polls.
 * @param {{ upstream: UpstreamPacing, now: number }} props
 */
export function LiveStrip({ upstream: { recent_polls: polls, recent_heads: heads, chain }, now }) {
  const placeOf = (at) => ({
    left: `${100 * Math.min(1, Math.max(0, 1 - (now - Date.parse(at)) / SPAN_MS))}%`,
  });
  const parts = Object.entries(NAMES).map(([meaning, name]) => {
    const number = polls.filter(({ result }) => meaningOf(result) === meaning).length;
    return number > 0 && html`<span class=${`dot ${meaning}`}>${count(number)} ${name}</span> `;
  });
  return html`<figure class="live">
    <figcaption>
      <strong>Last 2 minutes</strong>
      <span class="muted">${chain && `${count(heads.length)} heads, `}${polls.length === 0 ? 'no polls' : `${count(polls.length)} polls:`} ${parts}</span>
    </figcaption>
    <div class="track" aria-hidden="true">
      ${heads.map(({ at, block_number }) => html`<span key=${block_number} class="head" style=${placeOf(at)} title=${`block ${count(block_number)}`}></span>`)}
      ${polls.map(
        ({ at, duration_ms, result }) =>
          html`<span class=${`poll ${meaningOf(result)}`} style=${placeOf(at)} title=${`${result.replace('_', ' ')} after ${duration(duration_ms / 1_000)}, ${absoluteTime(at)}`}></span>`,
      )}
    </div>
  </figure>`;
}
