import { useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { ConfirmDialog } from '../parts/confirm-dialog.js';
import { absoluteTime, count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action, Facts } from '../parts/parts.js';

const OLDEST = '1970-01-01T00:00:00.000Z';

/**
 * @typedef {{ destination: string, since: string, until: string, event_type: string, submission_id:
 * string }} ReplayFilter empty: no condition
 */

/**
 * Shows the number of dead letters of a destination and of events that it missed while it was
 * disabled, and replays them after a confirmation.
 * @param {{ filter: ReplayFilter, onReplayed: () => void }} props
 */
export function BulkReplay({ filter, onReplayed }) {
  const { api, announce } = useDashboard();
  const [confirming, setConfirming] = useState(
    /** @type {{ filter: ReplayFilter, body: object, replayed: number } | undefined} */ (undefined),
  );
  const [message, setMessage] = useState('');
  const preview = async () => {
    setMessage('');
    const body = bodyOf(filter);
    const { replayed } = await api.post('v1/deliveries/replay', { ...body, dry_run: true });
    if (replayed === 0) return 'No dead letter and no missed event matches.';
    setConfirming({ filter, body, replayed });
    return '';
  };
  const replay = async () => {
    const { replayed } = await api.post('v1/deliveries/replay', confirming?.body);
    const text = `${count(replayed)} ${replayed === 1 ? 'waits' : 'wait'} to be sent again.`;
    setMessage(text);
    announce(text);
    onReplayed();
  };
  return html`<span class="action">
    <${Action} label="Replay dead letters…" act=${preview} />
    ${message && html`<span class="message">${message}</span>`}
    ${
      confirming &&
      html`<${ConfirmDialog}
        title=${`Replay ${count(confirming.replayed)} ${confirming.replayed === 1 ? 'delivery' : 'deliveries'}?`}
        confirm=${`Replay ${count(confirming.replayed)}`}
        act=${replay}
        onClose=${() => setConfirming(undefined)}
      >
        <p>Dead letters, and events that were missed while the webhook was disabled, are sent again:</p>
        <${Facts} of=${factsOf(confirming.filter)} />
      <//>`
    }
  </span>`;
}

/** @param {ReplayFilter} filter */
function bodyOf({ destination, since, until, event_type, submission_id }) {
  return {
    destination,
    since: since || OLDEST,
    ...(until && { until }),
    ...(event_type && { event_types: event_type.split(',') }),
    ...(submission_id && { submission_id }),
  };
}

/** @param {ReplayFilter} filter @returns {[string, any][]} */
function factsOf({ destination, since, until, event_type, submission_id }) {
  return [
    ['To', html`<span class="id value">${destination}</span>`],
    ['Events since', since ? absoluteTime(since) : 'the oldest that is kept'],
    ['Events before', until ? absoluteTime(until) : 'now'],
    ['Event types', event_type || 'all'],
    ['Submission', submission_id || 'all'],
  ];
}
