import { ApiError } from './api.js';

/** @import { Event as ServerEvent } from '../../../client/api.ts' */

/**
 * The connection is considered dead after this time without data; the server sends a heartbeat
 * every 15 s.
 */
const SILENCE_MS = 45_000;
/** Events are passed on in batches, so that the page renders at most four times a second. */
const BATCH_MS = 250;
const MAX_BATCH = 500;
/**
 * After a longer disconnection the page reloads its data, which is faster than replaying the missed
 * events.
 */
const RESUME_WITHIN_MS = 60_000;
const MAX_DELAY_MS = 15_000;

/**
 * @typedef {{ kind: 'connecting' | 'live' } | { kind: 'lost', retryAt: number }} FeedState
 * @typedef {ServerEvent} FeedEvent
 * @typedef {{ events: readonly FeedEvent[], isWhole: boolean }} Batch `isWhole`: no event was omitted since the previous batch
 */

/** The submission of an event; undefined if it is not about one. @param {FeedEvent} event */
export function submissionOf({ data }) {
  return 'submission' in data ? data.submission : undefined;
}

/** The live feed. It reconnects with growing delays and resumes after the last event. */
export class Feed {
  /** @type {FeedState} */
  state = { kind: 'connecting' };
  #api;
  #stopped = new AbortController();
  #events = new EventTarget();
  /** @type {FeedEvent[]} */
  #batch = [];
  #isWhole = true;
  #isScheduled = false;
  /** @type {(() => void) | undefined} */
  #wake;

  /** @param {import('./api.js').Api} api */
  constructor(api) {
    this.#api = api;
  }

  start() {
    document.addEventListener('visibilitychange', () => this.#schedule(), { signal: this.#stopped.signal });
    window.addEventListener('online', () => this.retry(), { signal: this.#stopped.signal });
    void this.#run();
  }

  stop() {
    this.#stopped.abort();
    this.#wake?.();
  }

  /** Reconnects immediately if it is waiting. */
  retry() {
    this.#wake?.();
  }

  /** @param {(batch: Batch) => void} listener @returns {() => void} ends it */
  onBatch(listener) {
    return this.#on('batch', (event) => listener(/** @type {CustomEvent<Batch>} */ (event).detail));
  }

  /** @param {() => void} listener @returns {() => void} ends it */
  onState(listener) {
    return this.#on('state', listener);
  }

  /** @param {string} type @param {(event: Event) => void} listener */
  #on(type, listener) {
    this.#events.addEventListener(type, listener);
    return () => this.#events.removeEventListener(type, listener);
  }

  async #run() {
    /** @type {string | undefined} */
    let position;
    let heardAt = performance.now();
    for (let failures = 0; !this.#stopped.signal.aborted; ) {
      if (performance.now() - heardAt > RESUME_WITHIN_MS) position = undefined;
      const connection = this.#connection();
      try {
        const response = await this.#api.openFeed({ lastEventId: position, signal: connection.signal });
        if (!response.body) throw new Error('no body');
        for await (const { id, data } of parseSse(response.body)) {
          connection.heard();
          heardAt = performance.now();
          if (this.state.kind !== 'live') {
            // The page's data is older than this connection: not every change is an event, and
            // requests failed in the meantime.
            this.#isWhole = false;
            failures = 0;
            this.#setState({ kind: 'live' });
            this.#schedule();
          }
          if (data !== undefined) this.#add(JSON.parse(data));
          if (id !== undefined) position = id;
        }
      } catch (error) {
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return;
        // The position belongs to another ledger.
        if (error instanceof ApiError && error.status === 400) position = undefined;
      } finally {
        connection.close();
      }
      if (this.#stopped.signal.aborted) return;
      failures += 1;
      await this.#pause(Math.min(MAX_DELAY_MS, 500 * 2 ** (failures - 1)) * (0.5 + Math.random() / 2));
    }
  }

  #connection() {
    const silence = new AbortController();
    const hangUp = () => silence.abort();
    let timer = setTimeout(hangUp, SILENCE_MS);
    return {
      signal: AbortSignal.any([this.#stopped.signal, silence.signal]),
      heard() {
        clearTimeout(timer);
        timer = setTimeout(hangUp, SILENCE_MS);
      },
      close() {
        clearTimeout(timer);
        hangUp();
      },
    };
  }

  /** @param {number} delayMs */
  async #pause(delayMs) {
    this.#setState({ kind: 'lost', retryAt: Date.now() + delayMs });
    /** @type {number | undefined} */
    let timer;
    await new Promise((resolve) => {
      this.#wake = () => resolve(undefined);
      timer = setTimeout(this.#wake, delayMs);
    });
    clearTimeout(timer);
    this.#wake = undefined;
  }

  /** @param {FeedState} state */
  #setState(state) {
    this.state = state;
    this.#events.dispatchEvent(new Event('state'));
  }

  /** @param {FeedEvent | { type: 'feed.gap' }} event */
  #add(event) {
    if (event.type === 'feed.gap') this.#isWhole = false;
    else this.#batch.push(event);
    if (this.#batch.length > MAX_BATCH) {
      this.#batch.shift();
      this.#isWhole = false;
    }
    this.#schedule();
  }

  #schedule() {
    const hasNothing = this.#batch.length === 0 && this.#isWhole;
    if (hasNothing || this.#isScheduled || document.hidden) return;
    this.#isScheduled = true;
    setTimeout(() => {
      this.#isScheduled = false;
      const detail = { events: this.#batch, isWhole: this.#isWhole };
      this.#batch = [];
      this.#isWhole = true;
      this.#events.dispatchEvent(new CustomEvent('batch', { detail }));
    }, BATCH_MS);
  }
}

/**
 * Reads server-sent events: yields each block's id and data. A block without data only moves the
 * position.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<{ id: string | undefined, data: string | undefined }, void, undefined>}
 */
async function* parseSse(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) yield fieldsOf(block);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** @param {string} block */
function fieldsOf(block) {
  /** @type {Record<string, string>} */
  const fields = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, '');
  }
  return { id: fields.id, data: fields.data };
}
