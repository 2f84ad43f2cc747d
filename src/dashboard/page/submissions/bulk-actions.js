import { useRef, useState } from 'preact/hooks';
import { ApiError, messageOf } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { ConfirmDialog } from '../parts/confirm-dialog.js';
import { html } from '../parts/html.js';
import { cancel, retrack } from './changes.js';
import { canRetrack, OPEN_STATUSES, submissionLink } from './submission-table.js';

/**
 * @typedef {{ id: string, text: string, isError: boolean }} Result
 * @typedef {{ label: string, question: (count: string) => string, fits: (status: string) => boolean, effect: string, act: typeof cancel }} Change
 */

/** @type {readonly Change[]} */
const CHANGES = [
  {
    label: 'Cancel selected',
    question: (count) => `Cancel ${count}?`,
    fits: (status) => OPEN_STATUSES.includes(status),
    effect: 'Their tracking ends, and subscribers receive submission.cancelled.',
    act: cancel,
  },
  {
    label: 'Retrack selected',
    question: (count) => `Track ${count} again?`,
    fits: canRetrack,
    effect: 'They are polled again with the default time limits, and subscribers receive submission.retracked.',
    act: retrack,
  },
];

/**
 * Changes the selected submissions one by one, and lists the result of each. Those that failed stay selected.
 * @param {{ submissions: readonly any[], select: (ids: readonly string[]) => void, onDone: () => void }} props `submissions`: the selected ones
 */
export function BulkActions({ submissions, select, onDone }) {
  const { api, announce } = useDashboard();
  const [asked, setAsked] = useState(
    /** @type {{ change: Change, submissions: readonly any[] } | undefined} */ (undefined),
  );
  const [results, setResults] = useState(/** @type {readonly Result[]} */ ([]));
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  const closed = () => {
    setAsked(undefined);
    // The button that had the focus disappears with the selection.
    if (document.activeElement === document.body) heading.current?.focus();
  };
  const run = async () => {
    if (!asked) return;
    const done = await changeEach(asked.submissions, (one) => asked.change.act(api, one));
    const failed = done.filter(({ isError }) => isError);
    setResults(done);
    select(failed.map(({ id }) => id));
    announce(`${done.length - failed.length} done, ${failed.length} failed.`);
    onDone();
  };
  return html`${
    submissions.length > 0 &&
    html`<div class="actions selected" role="group" aria-label="Selected submissions">
      <span>${submissions.length} selected</span>
      ${CHANGES.map(
        (change) => html`<button
          key=${change.label}
          type="button"
          disabled=${!submissions.some(({ status }) => change.fits(status))}
          onClick=${() => setAsked({ change, submissions })}
        >
          ${change.label}
        </button>`,
      )}
      <button type="button" onClick=${() => select([])}>Clear the selection</button>
    </div>`
  }
  ${asked && html`<${Question} ...${asked} act=${run} onClose=${closed} />`}
  ${results.length > 0 && html`<${Results} of=${results} heading=${heading} onClose=${() => setResults([])} />`}`;
}

/** @param {{ change: Change, submissions: readonly any[], act: () => Promise<void>, onClose: () => void }} props */
function Question({ change, submissions, act, onClose }) {
  const others = submissions.filter(({ status }) => !change.fits(status)).length;
  const count = counted(submissions.length - others);
  return html`<${ConfirmDialog} title=${change.question(count)} confirm=${change.label} act=${act} onClose=${onClose}>
    <p>${change.effect}</p>
    ${others > 0 && html`<p>${counted(others)} of the selection cannot change in this way and will stay as they are.</p>`}
  <//>`;
}

/** @param {number} number */
function counted(number) {
  return number === 1 ? '1 submission' : `${number} submissions`;
}

/** @param {{ of: readonly Result[], heading: { current: HTMLElement | null }, onClose: () => void }} props */
function Results({ of, heading, onClose }) {
  return html`<section aria-labelledby="results">
    <h2 id="results" tabindex="-1" ref=${heading}>Results</h2>
    <ul class="results">
      ${of.map(
        ({ id, text, isError }) => html`<li key=${id}>
          ${submissionLink({ submission_id: id })} <span class=${isError ? 'wrong' : ''}>${text}</span>
        </li>`,
      )}
    </ul>
    <button type="button" onClick=${onClose}>Close the results</button>
  </section>`;
}

/** @param {readonly any[]} submissions @param {(one: any) => Promise<string>} change @returns {Promise<Result[]>} */
async function changeEach(submissions, change) {
  /** @type {Result[]} */
  const results = [];
  let isStopped = false;
  for (const one of submissions) {
    const { submission_id: id } = one;
    try {
      const text = isStopped ? 'Not sent.' : await change(one);
      results.push({ id, text, isError: isStopped });
    } catch (error) {
      results.push({ id, text: messageOf(error), isError: true });
      isStopped ||= failsForAll(error);
    }
  }
  return results;
}

/** Whether the next request would fail, too: the server is away, has ended the session, or limits the requests. @param {unknown} error */
function failsForAll(error) {
  return !(error instanceof ApiError) || [401, 403, 429].includes(error.status);
}
