import { useEffect, useState } from 'preact/hooks';
import { fromLocalTime, toLocalTime } from './form.js';
import { html } from './html.js';

/**
 * A text that is applied with Enter, or when the field is left.
 * @param {{ label: string, value: string, apply: (value: string) => void, type?: string, [attribute: string]: unknown }} props
 */
export function TextFilter({ label, value, apply, type = 'text', ...attributes }) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const done = () => typed.trim() !== value && apply(typed.trim());
  return html`<label>
    <span>${label}</span>
    <input
      type=${type}
      value=${typed}
      spellcheck="false"
      autocomplete="off"
      ...${attributes}
      onInput=${(/** @type {any} */ event) => setTyped(event.target.value)}
      onBlur=${done}
      onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => key === 'Enter' && done()}
    />
  </label>`;
}

/** A time in the time zone of the browser. @param {{ label: string, value: string, apply: (value: string) => void }} props `value`: ISO 8601, or empty */
export function TimeFilter({ label, value, apply }) {
  const local = toLocalTime(value);
  return html`<${TextFilter}
    label=${label}
    value=${local}
    type="datetime-local"
    step=${local.length > 16 ? '1' : undefined}
    apply=${(/** @type {string} */ typed) => apply(fromLocalTime(typed))}
  />`;
}

/** One of several values, or all. @param {{ label: string, value: string, values: readonly string[], apply: (value: string) => void }} props */
export function ChoiceFilter({ label, value, values, apply }) {
  const offered = value === '' || values.includes(value) ? values : [...values, value];
  return html`<label>
    <span>${label}</span>
    <select onChange=${(/** @type {any} */ event) => apply(event.target.value)}>
      <option value="" selected=${value === ''}>all</option>
      ${offered.map((one) => html`<option key=${one} value=${one} selected=${one === value}>${one}</option>`)}
    </select>
  </label>`;
}
