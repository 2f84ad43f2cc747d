import { useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action } from '../parts/parts.js';

const HOUR_MS = 3_600_000;
const SPANS = { 'the last hour': HOUR_MS, 'the last day': 24 * HOUR_MS, 'the last week': 168 * HOUR_MS };

/** Sends every dead letter of a destination again, and what it missed while it was disabled. @param {{ destination: string, onReplayed: () => void }} props */
export function ReplayDead({ destination, onReplayed }) {
  const { api } = useDashboard();
  const [span, setSpan] = useState(/** @type {keyof typeof SPANS} */ ('the last day'));
  const replay = async () => {
    const since = new Date(Date.now() - SPANS[span]).toISOString();
    const { replayed } = await api.post('v1/deliveries/replay', { destination, since });
    onReplayed();
    return replayed === 0
      ? `Nothing of ${span} is left to be replayed.`
      : `${count(replayed)} of ${span} wait to be sent again.`;
  };
  return html`<span class="action">
    <label>
      Dead letters and missed events of
      <select onChange=${(/** @type {any} */ event) => setSpan(event.target.value)}>
        ${Object.keys(SPANS).map((name) => html`<option key=${name} selected=${name === span}>${name}</option>`)}
      </select>
    </label>
    <${Action} label="Replay them" name="Replay them: dead letters and missed events" act=${replay} />
  </span>`;
}
