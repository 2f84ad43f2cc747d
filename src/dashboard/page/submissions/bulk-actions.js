import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, messageOf } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { ConfirmDialog } from '../parts/form.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { cancel, retrack } from './submission-actions.js';
import { canRetrack, OPEN_STATUSES, submissionLink } from './submission-table.js';

/** If there are more results, only the failed ones are listed. */
const LISTED = 50;

/**
 * @typedef {import('./submission-table.js').Listed} Listed
 * @typedef {{ label: string, title: (count: string) => string, fits: (status: string) => boolean, effect: string, act: typeof cancel }} Change
 */

/** @type {readonly Change[]} */
const CHANGES = [
  {
    label: 'Cancel selected',
    title: (count) => `Cancel ${count}?`,
    fits: (status) => OPEN_STATUSES.includes(status),
    effect: 'Their tracking ends, and subscribers receive submission.cancelled.',
    act: cancel,
  },
  {
    label: 'Retrack selected',
    title: (count) => `Track ${count} again?`,
    fits: canRetrack,
    effect:
      'They are polled again with the default time limits, and subscribers receive submission.retracked.',
    act: retrack,
  },
];

/**
 * Changes the selected submissions one by one, and shows the results. Those that failed stay
 * selected.
 * @param {{ submissions: readonly Listed[], select: (submissions: readonly Listed[]) => void, onDone: () => void, children?: any }} props
 *   `submissions`: the selected ones; `children`: the controls that select
 */
export function BulkActions({ submissions, select, onDone, children }) {
  const { api, announce } = useDashboard();
  const [confirming, setConfirming] = useState(
    /** @type {{ change: Change, submissions: readonly Listed[] } | undefined} */ (undefined),
  );
  const [results, setResults] = useState(/** @type {readonly Result[]} */ ([]));
  const [made, setMade] = useState(/** @type {number | undefined} */ (undefined));
  const stopping = useRef(new AbortController());
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  const closed = () => setConfirming(undefined);
  // The button that had the focus disappears with the selection, before or after the dialog closes.
  useEffect(() => {
    if (results.length > 0 && !confirming && document.activeElement === document.body)
      heading.current?.focus();
  }, [results, confirming, submissions.length]);
  const run = async () => {
    if (!confirming) return;
    stopping.current = new AbortController();
    setMade(0);
    const { change, submissions: chosen } = confirming;
    const done = await changeEach(chosen, (one) => change.act(api, one), {
      signal: stopping.current.signal,
      onProgress: setMade,
    });
    const failed = new Set(done.filter(({ isError }) => isError).map(({ id }) => id));
    setMade(undefined);
    setResults(done);
    select(chosen.filter(({ submission_id }) => failed.has(submission_id)));
    announce(`${done.length - failed.size} done, ${failed.size} failed.`);
    onDone();
  };
  return html`<div class="actions selected" role="group" aria-label="Selected submissions">
      ${children}
      ${
        submissions.length > 0 &&
        html`<span>${count(submissions.length)} selected</span>
          ${CHANGES.map(
            (change) => html`<button
              key=${change.label}
              type="button"
              disabled=${!submissions.some(({ status }) => change.fits(status))}
              onClick=${() => setConfirming({ change, submissions })}
            >
              ${change.label}
            </button>`,
          )}
          <button type="button" onClick=${() => select([])}>Clear the selection</button>`
      }
    </div>
    ${confirming && html`<${ConfirmChange} ...${confirming} made=${made} act=${run} stop=${() => stopping.current.abort()} onClose=${closed} />`}
    ${results.length > 0 && html`<${Results} of=${results} heading=${heading} onClose=${() => setResults([])} />`}`;
}

/**
 * @param {{ change: Change, submissions: readonly Listed[], made: number | undefined, act: () =>
 * Promise<void>, stop: () => void, onClose: () => void }} props `made`: the number of those that
 * were sent
 */
function ConfirmChange({ change, submissions, made, act, stop, onClose }) {
  const others = submissions.filter(({ status }) => !change.fits(status)).length;
  const number = counted(submissions.length - others);
  return html`<${ConfirmDialog} title=${change.title(number)} confirm=${change.label} act=${act} onClose=${onClose}>
    <p>${change.effect}</p>
    ${others > 0 && html`<p>${counted(others)} of the selection cannot change in this way and will stay as they are.</p>`}
    ${
      made !== undefined &&
      html`<p>
        <progress max=${submissions.length} value=${made} aria-label="Progress"></progress>
        ${` ${count(made)} of ${count(submissions.length)} `}
        <button type="button" onClick=${stop}>Stop</button>
      </p>`
    }
  <//>`;
}

/** @param {number} number */
function counted(number) {
  return number === 1 ? '1 submission' : `${count(number)} submissions`;
}

/**
 * @param {{ of: readonly Result[], heading: { current: HTMLElement | null }, onClose: () => void }}
 * props
 */
function Results({ of, heading, onClose }) {
  const listed = of.length > LISTED ? of.filter(({ isError }) => isError) : of;
  return html`<section aria-labelledby="results">
    <h2 id="results" tabindex="-1" ref=${heading}>Results</h2>
    ${listed.length < of.length && html`<p>${counted(of.length - listed.length)} succeeded and are not listed.</p>`}
    <ul class="results">
      ${listed.map(
        ({ id, text, isError }) => html`<li key=${id}>
          ${submissionLink({ submission_id: id })} <span class=${isError ? 'wrong' : ''}>${text}</span>
        </li>`,
      )}
    </ul>
    <button type="button" onClick=${onClose}>Close the results</button>
  </section>`;
}

/** The most submissions that are selected at once. */
const MAX_SELECTED = 1_000;

/**
 * A button that selects what matches the filters on all pages.
 * @param {{ load: (limit: number) => Promise<{ submissions: readonly Listed[], hasMore: boolean }>, select: (submissions: readonly Listed[]) => void }} props
 */
export function SelectMatches({ load, select }) {
  const { announce } = useDashboard();
  const [isBusy, setIsBusy] = useState(false);
  const [message, setMessage] = useState('');
  const run = async () => {
    setIsBusy(true);
    setMessage('');
    try {
      const { submissions, hasMore } = await load(MAX_SELECTED);
      select(submissions);
      const more = hasMore ? `More than these ${count(submissions.length)} match.` : '';
      setMessage(more);
      announce(`${counted(submissions.length)} selected. ${more}`);
    } catch (error) {
      setMessage(messageOf(error));
    } finally {
      setIsBusy(false);
    }
  };
  return html`<button type="button" aria-busy=${isBusy} onClick=${() => isBusy || run()}>Select all that match</button>
    ${message && html`<span>${message}</span>`}`;
}

/** @typedef {{ id: string, text: string, isError: boolean }} Result */

/**
 * Changes submissions one after another, and returns a result for each. Stops on `signal`, and when
 * further requests would fail, too; the remaining submissions are reported as not sent.
 * @template {{ submission_id: string }} One
 * @param {readonly One[]} submissions
 * @param {(one: One) => Promise<string>} change returns what it did
 * @param {{ signal: AbortSignal, onProgress: (made: number) => void }} options
 * @returns {Promise<Result[]>}
 */
async function changeEach(submissions, change, { signal, onProgress }) {
  /** @type {Result[]} */
  const results = [];
  let isStopped = false;
  for (const one of submissions) {
    const { submission_id: id } = one;
    isStopped ||= signal.aborted;
    try {
      const text = isStopped ? 'Not sent.' : await change(one);
      results.push({ id, text, isError: isStopped });
    } catch (error) {
      results.push({ id, text: messageOf(error), isError: true });
      isStopped = failsForAll(error);
    }
    onProgress(results.length);
  }
  return results;
}

/**
 * Returns whether the next request would fail, too: the server is unreachable, the session has
 * ended, or requests are limited. @param {unknown} error
 */
function failsForAll(error) {
  return !(error instanceof ApiError) || [401, 403, 429].includes(error.status);
}
