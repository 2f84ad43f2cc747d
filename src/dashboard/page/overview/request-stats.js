import { decimal } from '../parts/format.js';
import { html } from '../parts/html.js';

/** Requests per submission, compared with polling every 5 s. @param {{ lastHour: any }} props */
export function RequestStats({ lastHour }) {
  const { polls_per_submission: polls, fixed_5s_polls_per_submission: fixed } = lastHour;
  const isKnown = polls !== null && fixed !== null;
  return html`<section aria-labelledby="requests">
    <h2 id="requests">Requests per submission</h2>
    ${
      isKnown
        ? html`<dl class="bars">
              <${Bar} name="dawatch" value=${polls} of=${Math.max(polls, fixed)} />
              <${Bar} name="polling every 5 s" value=${fixed} of=${Math.max(polls, fixed)} />
            </dl>
            ${fixed > polls && html`<p class="muted">${decimal((1 - polls / fixed) * 100, 0)} % fewer in the last hour.</p>`}`
        : html`<p class="muted">Available after the first submission of the last hour becomes final.</p>`
    }
  </section>`;
}

/** @param {{ name: string, value: number, of: number }} props */
function Bar({ name, value, of }) {
  return html`<div>
    <dt>${name}</dt>
    <dd><span class="bar" aria-hidden="true" style=${{ inlineSize: `${(70 * value) / of}%` }}></span> ${decimal(value)}</dd>
  </div>`;
}
