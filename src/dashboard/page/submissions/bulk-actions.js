import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, messageOf } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action } from '../parts/parts.js';
import { cancel, retrack } from './submission-actions.js';
import { canRetrack, OPEN_STATUSES, submissionLink } from './submission-table.js';

/** @import { Submission } from '../../../client/api.ts' */

/** If there are more results, only the failed ones are listed. */
const LISTED = 50;

/** @typedef {{ label: string, title: (count: string) => string, fits: (status: string) => boolean, effect: string, act: typeof cancel }} Change */

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
 * @param {{ submissions: readonly Submission[], select: (submissions: readonly Submission[]) => void, onDone: () => void }} props
 *   `submissions`: the selected ones
 */
export function BulkActions({ submissions, select, onDone }) {
  const { api } = useDashboard();
  const [results, setResults] = useState(/** @type {readonly Result[]} */ ([]));
  const [made, setMade] = useState(/** @type {number | undefined} */ (undefined));
  const stopping = useRef(new AbortController());
  const run = async (/** @type {Change} */ change) => {
    stopping.current = new AbortController();
    setMade(0);
    const done = await changeEach(submissions, (one) => change.act(api, one), {
      signal: stopping.current.signal,
      onProgress: setMade,
    });
    const failed = new Set(done.filter(({ isError }) => isError).map(({ id }) => id));
    setMade(undefined);
    setResults(done);
    select(submissions.filter(({ submission_id }) => failed.has(submission_id)));
    onDone();
    return `${done.length - failed.size} done, ${failed.size} failed.`;
  };
  return html`${results.length > 0 && html`<${Results} of=${results} onClose=${() => setResults([])} />`}
    ${
      submissions.length > 0 &&
      html`<div class="actions floating" role="group" aria-label="Selected submissions">
        <strong>${count(submissions.length)} selected</strong>
        ${CHANGES.map((change) => {
          const fitting = submissions.filter(({ status }) => change.fits(status)).length;
          const others = submissions.length - fitting;
          return html`<${Action}
            key=${change.label}
            label=${change.label}
            title=${change.title(counted(fitting))}
            isDisabled=${fitting === 0}
            act=${() => run(change)}
          >
            <p>${change.effect}</p>
            ${others > 0 && html`<p>${counted(others)} of the selection cannot change in this way and will stay as they are.</p>`}
            ${made !== undefined && html`<${Progress} made=${made} of=${submissions.length} stop=${() => stopping.current.abort()} />`}
          <//>`;
        })}
        <button type="button" class="plain" onClick=${() => select([])}>Clear the selection</button>
      </div>`
    }`;
}

/** @param {{ made: number, of: number, stop: () => void }} props */
function Progress({ made, of, stop }) {
  return html`<p>
    <progress max=${of} value=${made} aria-label="Progress"></progress>
    ${` ${count(made)} of ${count(of)} `}
    <button type="button" onClick=${stop}>Stop</button>
  </p>`;
}

/** @param {number} number */
function counted(number) {
  return number === 1 ? '1 submission' : `${count(number)} submissions`;
}

/** @param {{ of: readonly Result[], onClose: () => void }} props */
function Results({ of, onClose }) {
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus(), [of]);
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
 * @param {{ load: (limit: number) => Promise<{ submissions: readonly Submission[], next_cursor: string | null }>, select: (submissions: readonly Submission[]) => void }} props
 */
export function SelectMatches({ load, select }) {
  const run = async () => {
    const { submissions, next_cursor: next } = await load(MAX_SELECTED);
    select(submissions);
    return next === null ? '' : `More than these ${count(submissions.length)} match.`;
  };
  return html`<${Action} label="Select all that match" act=${run} />`;
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
