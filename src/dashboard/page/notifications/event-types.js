import { html } from '../parts/html.js';

/** The types of events that a webhook may receive, by family. */
const EVENT_TYPES = {
  submission: [
    'finalized',
    'failing',
    'recovered',
    'failed',
    'unknown',
    'rejected',
    'expired',
    'cancelled',
    'retracked',
    'stuck',
    'corrected',
  ],
  upstream: ['down', 'up', 'unauthorized'],
  alert: ['raised', 'reminder', 'resolved'],
};

const WILDCARDS = ['*', ...Object.keys(EVENT_TYPES).map((family) => `${family}.*`)];
export const TYPES = Object.entries(EVENT_TYPES).flatMap(([family, names]) =>
  names.map((name) => `${family}.${name}`),
);

/**
 * The subscribed types, as checkboxes with the name `types`.
 * @param {{ chosen: readonly string[], error: string | undefined }} props `chosen`: may contain types of a newer server
 */
export function EventTypes({ chosen, error }) {
  const others = chosen.filter((type) => !WILDCARDS.includes(type) && !TYPES.includes(type));
  const hasExact = chosen.some((type) => TYPES.includes(type));
  return html`<fieldset class=${error ? 'invalid' : ''} aria-describedby=${error ? 'types-error' : undefined}>
    <legend>Events</legend>
    ${error && html`<p id="types-error" class="wrong">${error}</p>`}
    <${Choices} types=${[...WILDCARDS, ...others]} chosen=${chosen} />
    <details open=${hasExact}>
      <summary>Single types</summary>
      <${Choices} types=${TYPES} chosen=${chosen} />
    </details>
  </fieldset>`;
}

/** @param {{ types: readonly string[], chosen: readonly string[] }} props */
function Choices({ types, chosen }) {
  return html`<div class="choices">
    ${types.map(
      (type) => html`<label key=${type}>
        <input type="checkbox" name="types" value=${type} defaultChecked=${chosen.includes(type)} /> ${type === '*' ? 'all events (*)' : type}
      </label>`,
    )}
  </div>`;
}
