import { useDashboard } from '../data/context.js';
import {
  Field,
  fromUtcText,
  invalidField,
  jsonOf,
  TextField,
  textOf,
  toUtcText,
} from '../parts/form.js';
import { html } from '../parts/html.js';
import { Action } from '../parts/parts.js';
import { FINAL_STATUSES, OPEN_STATUSES } from './submission-table.js';

/** @import { Submission, SubmissionPatch } from '../../../client/api.ts' */

/** @param {{ one: Submission, onChanged: () => void }} props */
export function SubmissionActions({ one, onChanged }) {
  const { api } = useDashboard();
  const after = async (change) => {
    const text = await change;
    onChanged();
    return text;
  };
  return html`<div class="actions">
    <${Action}
      label="Cancel tracking"
      title="Cancel this submission?"
      confirm="Its tracking ends, and subscribers receive submission.cancelled. It can be tracked again later."
      isDisabled=${!OPEN_STATUSES.includes(one.status)}
      act=${() => after(cancel(api, one))}
    />
    <${Action}
      label="Retrack"
      title="Track this submission again?"
      confirm="It is polled again with the default time limits, its history continues, and subscribers receive submission.retracked. Metadata and callback URL stay."
      isDisabled=${!FINAL_STATUSES.slice(1).includes(one.status)}
      act=${() => after(retrack(api, one))}
    />
    <${Action}
      label="Change options"
      title="Change the options"
      submit="Save"
      fields=${OPTIONS}
      act=${(form) => after(changeOptions(api, one, form))}
    >
      ${(errorOf) => html`<${OptionFields} one=${one} errorOf=${errorOf} />`}
    <//>
  </div>`;
}

export function pathOf(id) {
  return `v1/submissions/${encodeURIComponent(id)}`;
}

/** The server decides by the current status, which may differ from the shown one. */
async function cancel(api, { submission_id }) {
  const { status } = await api.delete(pathOf(submission_id));
  return status === 'cancelled' ? 'Cancelled.' : `Unchanged: it has ended as ${status}.`;
}

async function retrack(api, { submission_id, upstream }) {
  const { retracked, submissions } = await api.post('v1/submissions', {
    submission_id,
    upstream,
    retrack: true,
  });
  return retracked === 1 ? 'Tracked again.' : `Unchanged: it is ${submissions[0]?.status}.`;
}

/** @type {Record<Exclude<keyof SubmissionPatch, 'metadata'>, { label: string, hint: string, [attribute: string]: string }>} */
const FIELDS = {
  deadline: {
    label: 'Deadline',
    hint: 'UTC. A submission that is still open then ends as failed or expired.',
  },
  unknown_grace_s: {
    label: 'Not-found grace in seconds',
    hint: 'For this time, "not found" means "not yet"; at least 120 s apply.',
    type: 'number',
    step: 'any',
  },
  stuck_after_s: {
    label: 'Stuck after, in seconds',
    hint: 'After this time, an open submission is reported as stuck.',
    type: 'number',
    step: 'any',
  },
  callback_url: {
    label: 'Callback URL',
    hint: 'Receives the events. Empty: no further events are sent. Only admins see more than its origin, and an earlier URL is not kept.',
    inputmode: 'url',
  },
  data_hash: {
    label: 'Data hash',
    hint: 'BLAKE2b-256 hash of the submitted data, which the upstream must report. Empty: none is required.',
  },
};

/** They cannot be removed. */
const TIME_LIMITS = ['deadline', 'unknown_grace_s', 'stuck_after_s'];
/** @type {readonly string[]} */
const OPTIONS = [...Object.keys(FIELDS), 'metadata'];

/** @param {{ one: Submission, errorOf: (field: string) => any }} props */
function OptionFields({ one, errorOf }) {
  const texts = textsOf(one);
  const isFinal = FINAL_STATUSES.includes(one.status);
  const field = (/** @type {keyof typeof FIELDS} */ name) =>
    html`<${TextField} key=${name} name=${name} value=${texts[name]} error=${errorOf(name)} ...${FIELDS[name]} />`;
  return html`
    ${
      isFinal
        ? html`<p class="muted">The submission has ended: its time limits cannot change. Retrack it to set new ones.</p>`
        : [field('deadline'), field('unknown_grace_s'), field('stuck_after_s')]
    }
    <${Field} label="Metadata as JSON" hint="Replaces the whole object. Empty: removes it." error=${errorOf('metadata')}>
      ${(attributes) =>
        html`<textarea ...${attributes} class="value" name="metadata" rows="6" spellcheck=${false} defaultValue=${texts.metadata} />`}
    <//>
    ${field('callback_url')}
    ${field('data_hash')}
  `;
}

/** The options as texts. @param {Submission} one @returns {Record<string, string>} */
function textsOf(one) {
  return {
    deadline: toUtcText(one.deadline_at),
    unknown_grace_s: String(one.unknown_grace_s),
    stuck_after_s: String(one.stuck_after_s),
    metadata: one.metadata === null ? '' : JSON.stringify(one.metadata, null, 2),
    callback_url: one.callback_url ?? '',
    data_hash: one.data_hash ?? '',
  };
}

async function changeOptions(api, one, form) {
  const before = textsOf(one);
  const changed = OPTIONS.filter((name) => form.has(name) && textOf(form, name) !== before[name]);
  if (changed.length === 0) throw new Error('Nothing is changed yet.');
  const body = Object.fromEntries(changed.map((name) => [name, optionOf(form, name)]));
  await api.patch(pathOf(one.submission_id), body);
  return 'The options are changed.';
}

function optionOf(form, name) {
  const text = textOf(form, name);
  if (name === 'metadata') return jsonOf(form, name);
  if (!TIME_LIMITS.includes(name)) return text || null;
  if (text === '') throw invalidField(name, 'enter a value');
  if (name !== 'deadline') return Number(text);
  const deadline = fromUtcText(text);
  if (deadline === '') throw invalidField(name, 'write it like 2026-01-31 14:00');
  return deadline;
}
