import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../data/api.js';
import { useDashboard } from '../data/context.js';
import { useLoad } from '../data/use-load.js';
import { count } from '../parts/format.js';
import { html } from '../parts/html.js';
import { queryOf } from './filters.js';

/**
 * The number of submissions that match the filters. What one response does not count is counted on
 * demand. @param {{ filters: import('./filters.js').Filters, version: number }} props
 */
export function Count({ filters, version }) {
  const { api } = useDashboard();
  const [isCounting, setIsCounting] = useState(false);
  const [error, setError] = useState('');
  const part = async (/** @type {string | null} */ cursor, /** @type {AbortSignal} */ signal) => {
    const body = await api.get(`v1/submission_count?${queryOf(filters, cursor)}`, { signal });
    return { count: body.count, next: body.next_cursor };
  };
  const loaded = useLoad((signal) => part(null, signal), 'count', version);
  const running = useRef(/** @type {AbortController | undefined} */ (undefined));
  useEffect(() => () => running.current?.abort(), [version]);
  const countAll = async () => {
    const controller = new AbortController();
    running.current = controller;
    setIsCounting(true);
    setError('');
    try {
      for (let next = loaded.data?.next ?? null; next !== null; ) {
        const more = await part(next, controller.signal);
        next = more.next;
        loaded.setData((before) => ({ count: before.count + more.count, next: more.next }));
      }
    } catch (thrown) {
      if (!controller.signal.aborted) setError(messageOf(thrown));
    } finally {
      setIsCounting(false);
    }
  };
  // The list shows the same error.
  if (loaded.data === undefined) return html`<p class="counted"></p>`;
  const { count: number, next } = loaded.data;
  return html`<p class="counted" role="status">
    ${next === null ? '' : 'At least '}${count(number)} ${number === 1 ? 'submission' : 'submissions'}
    ${next !== null && html` <button type="button" aria-disabled=${isCounting} onClick=${() => isCounting || countAll()}>${isCounting ? 'Counting…' : 'Count all'}</button>`}
    ${error && html` <span class="wrong">${error}</span>`}
  </p>`;
}
