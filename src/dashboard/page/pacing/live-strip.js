import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { meaningOf, PollDot } from '../parts/poll-dot.js';

/** @import { UpstreamPacing } from '../../../client/api.ts' */

/** The server sends the polls and heads of this time. */
const SPAN_MS = 120_000;
/** The server keeps the newest polls, which may be those of a shorter time. */
const KEPT = 2_000;

/**
 * The last two minutes of an upstream, to scale: the final blocks of its chain, if a node is
 * configured, and the polls.
 * @param {{ upstream: UpstreamPacing, now: number }} props
 */
export function LiveStrip({ upstream, now }) {
  const { recent_polls: polls, recent_heads: heads, chain } = upstream;
  const leftOf = (/** @type {string} */ at) =>
    `${100 * Math.min(1, Math.max(0, 1 - (now - Date.parse(at)) / SPAN_MS))}%`;
  return html`<figure class="live">
    <figcaption>
      <strong>Last 2 minutes</strong>
      <span class="muted">${textOf(upstream)}</span>
    </figcaption>
    ${
      (polls.length > 0 || heads.length > 0) &&
      html`<div aria-hidden="true">
        ${
          chain &&
          html`<div class="lane">
            <span class="muted">heads</span>
            <div class="track">
              ${heads.map(({ at, block_number }) => html`<span key=${block_number} class="head" style=${{ left: leftOf(at) }} title=${`block ${count(block_number)}`}></span>`)}
            </div>
          </div>`
        }
        <div class="lane">
          <span class="muted">polls</span>
          <div class="track">${polls.map((poll) => html`<${PollDot} poll=${poll} left=${leftOf(poll.at)} />`)}</div>
        </div>
        <div class="lane">
          <span></span>
          <div class="ends muted"><span>2 min ago</span><span>now</span></div>
        </div>
      </div>`
    }
  </figure>`;
}

const NAMES = { pending: 'not final yet', final: 'found final', error: 'with an error' };

/** @param {UpstreamPacing} upstream */
function textOf({ recent_polls: polls, recent_heads: heads, chain }) {
  const meanings = polls.map(({ result }) => meaningOf(result));
  const parts = Object.entries(NAMES).map(([meaning, name]) => {
    const number = meanings.filter((one) => one === meaning).length;
    return number > 0 && html`<span class=${`dot ${meaning}`}>${count(number)} ${name}</span>`;
  });
  const blocks = heads.length === 1 ? '1 head' : `${count(heads.length)} heads`;
  const newest = polls.length < KEPT ? '' : 'the newest ';
  const found = polls.length === 1 ? '1 poll' : `${newest}${count(polls.length)} polls`;
  if (polls.length === 0) return `${chain ? `${blocks}, ` : ''}no polls.`;
  return html`${chain && `${blocks}, `}${found}: ${parts}`;
}
