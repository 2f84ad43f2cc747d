import { useState } from 'preact/hooks';
import { useDashboard } from '../data/context.js';
import { CopyButton } from '../parts/copy-button.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action, Badge, Facts } from '../parts/parts.js';

/** The server reads a million entries in some ten seconds. */
const VERIFY_TIMEOUT_MS = 600_000;

/**
 * The chain of hashes: its head, a check of all hashes, and the export.
 * @param {{ head: { seq: number, hash: string } | null, onExported: () => void }} props
 */
export function Chain({ head, onExported }) {
  const { api } = useDashboard();
  const [check, setCheck] = useState(/** @type {any} */ (undefined));
  const verify = async () => {
    setCheck(undefined);
    const result = await api.get('v1/audit/verify', { timeoutMs: VERIFY_TIMEOUT_MS });
    setCheck(result);
    if (!result.intact) throw new Error(textOf(result));
    return textOf(result);
  };
  const exportAll = async () => {
    const entries = await api.download('v1/audit?format=ndjson', VERIFY_TIMEOUT_MS);
    save(entries, 'audit.ndjson');
    onExported();
    return 'The browser saves the export. The audit records the export.';
  };
  return html`<section aria-labelledby="chain">
    <h2 id="chain">Chain</h2>
    <${Facts}
      of=${[
        ['Entries', head === null ? null : count(head.seq)],
        ['State', html`<${Badge} ...${stateOf(check)} />`],
        [
          'Hash of the newest entry',
          head &&
            html`<span class="id value hash">${head.hash}</span> <${CopyButton} text=${head.hash} name="the hash" />`,
        ],
      ]}
    />
    <div class="actions">
      <${Action} label="Verify" name="Verify every hash" act=${verify} />
      <${Action} label="Export" name="Export all entries as NDJSON" act=${exportAll} />
    </div>
    <p class="muted">
      Note the hash elsewhere: with <code>dawatch audit verify --expect-head</code> it shows later whether entries were removed.
    </p>
  </section>`;
}

/** @param {{ intact: boolean } | undefined} check */
function stateOf(check) {
  if (!check) return { state: 'unknown-yet', label: 'not verified yet' };
  return check.intact
    ? { state: 'enabled', label: 'intact' }
    : { state: 'failed', label: 'broken' };
}

/** @param {any} check */
function textOf({ intact, entries, seq, reason, pruned }) {
  if (!intact)
    return `Broken: ${seq === null ? '' : `entry ${seq}: `}${reason} (${count(entries)} before are intact).`;
  return `Intact: ${count(entries)} entries${pruned > 0 ? `, after ${count(pruned)} that retention has deleted` : ''}.`;
}

/** The browser reads the file within this time. */
const SAVED_WITHIN_MS = 60_000;

/** Saves a file as a download of the browser. @param {Blob} content @param {string} name */
function save(content, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SAVED_WITHIN_MS);
}
