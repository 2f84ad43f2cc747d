import { html } from '../parts/html.js';

const DAY_MS = 86_400_000;

/** Days by the text of their choice. */
const CHOICES = { 'in 30 days': 30, 'in 90 days': 90, 'in a year': 365 };

/** Choices of an expiry. @param {{ first?: string }} props `first`: a choice before the others */
export function ExpirySelect({ first }) {
  const names = [...(first === undefined ? [] : [first]), 'never', ...Object.keys(CHOICES)];
  return html`<label>
    <span>Expires</span>
    <select name="expires">
      ${names.map((name) => html`<option key=${name}>${name}</option>`)}
    </select>
  </label>`;
}

/**
 * Returns the time of a choice as ISO 8601; null: never; undefined: the first choice. @param
 * {string} choice
 */
export function expiryOf(choice) {
  if (choice === 'never') return null;
  const days = CHOICES[/** @type {keyof typeof CHOICES} */ (choice)];
  return days === undefined ? undefined : new Date(Date.now() + days * DAY_MS).toISOString();
}
