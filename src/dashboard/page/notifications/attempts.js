import { useDashboard } from '../data/context.js';
import { useLoad } from '../data/use-load.js';
import { html } from '../parts/html.js';
import { Command, Loadable, Time } from '../parts/parts.js';

/** The body that was sent, and the result of each attempt. @param {{ id: number, version: string }} props `version`: changes when there are new ones */
export function Attempts({ id, version }) {
  const { api } = useDashboard();
  const loaded = useLoad((signal) => api.get(`v1/deliveries/${id}`, { signal }), String(id), version);
  return html`<${Loadable} loaded=${loaded}>
    ${(/** @type {any} */ { attempts, event }) => html`
      ${attempts.length === 0 && html`<p class="muted">No attempt yet.</p>`}
      <ol class="attempts">
        ${attempts.map(
          (/** @type {any} */ attempt) => html`<li key=${attempt.at}>
            <${Time} at=${attempt.at} /> · ${attempt.duration_ms} ms ·
            ${attempt.http_status === null ? 'no response' : `HTTP ${attempt.http_status}`} ·
            ${attempt.error === null ? 'arrived' : html`<span class="wrong">${attempt.error}</span>`}
            ${attempt.response && html`<${Command}>${attempt.response}<//>`}
          </li>`,
        )}
      </ol>
      <details>
        <summary>Request body</summary>
        <${Command}>${JSON.stringify(event, null, 2)}<//>
      </details>
    `}
  <//>`;
}
