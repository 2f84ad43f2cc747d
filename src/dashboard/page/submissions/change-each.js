import { ApiError, messageOf } from '../data/api.js';

/** @typedef {{ id: string, text: string, isError: boolean }} Result */

/**
 * Changes submissions one after another, and returns a result for each. Stops on `signal`, and when
 * further requests would fail, too; the remaining submissions are reported as not sent.
 * @param {readonly { submission_id: string }[]} submissions
 * @param {(one: any) => Promise<string>} change returns what it did
 * @param {{ signal: AbortSignal, onProgress: (made: number) => void }} options
 * @returns {Promise<Result[]>}
 */
export async function changeEach(submissions, change, { signal, onProgress }) {
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
