/** @import { Event as ServerEvent } from '../../../client/api.ts' */

const RETRY_MS = 3_000;
/**
 * After a sleep of the computer, a connection can be dead without an error. Timers of hidden tabs
 * may run only once a minute.
 */
const TICK_MS = 5_000;
const SLEPT_MS = 90_000;
/** Events are passed on in batches, so that the page renders at most four times a second. */
const BATCH_MS = 250;
const MAX_BATCH = 500;

export const EVENT_TYPES = {
  submission: [
    ...'finalized failing recovered failed unknown rejected'.split(' '),
    ...'expired cancelled retracked stuck corrected contradicted'.split(' '),
  ],
  upstream: ['down', 'up', 'unauthorized'],
  alert: ['raised', 'resolved'],
};
export const TYPES = Object.entries(EVENT_TYPES).flatMap(([family, names]) =>
  names.map((name) => `${family}.${name}`),
);

/**
 * @typedef {'connecting' | 'live' | 'lost'} FeedState
 * @typedef {ServerEvent} FeedEvent
 * @typedef {{ events: readonly FeedEvent[], isWhole: boolean }} Batch `isWhole`: no event was omitted since the previous batch
 */

/** The submission of an event; undefined if it is not about one. @param {FeedEvent} event */
export function submissionOf({ data }) {
  return 'submission' in data ? data.submission : undefined;
}

/** Reconnects; passes nothing on while the tab is hidden. Events: `batch` (a Batch), `state`. */
export class Feed extends EventTarget {
  /** @type {FeedState} */
  state = 'connecting';
  #api;
  /** @type {EventSource | undefined} */
  #source;
  /** @type {number | undefined} */
  #retry;
  /** @type {number | undefined} */
  #ticks;
  /** @type {FeedEvent[]} */
  #batch = [];
  #isWhole = true;
  #isScheduled = false;

  constructor(api) {
    super();
    this.#api = api;
  }

  connect() {
    this.stop();
    if (this.state === 'live') this.#setState('connecting');
    const source = new EventSource('v1/events');
    this.#source = source;
    let tickAt = Date.now();
    this.#ticks = setInterval(() => {
      const passedMs = Date.now() - tickAt;
      tickAt += passedMs;
      if (passedMs > SLEPT_MS) this.connect();
    }, TICK_MS);
    document.addEventListener('visibilitychange', this.#schedule);
    source.onopen = () => {
      this.#setState('live');
      // The page's data is older than this connection.
      this.#add(undefined);
    };
    source.onerror = () => {
      source.close();
      this.#setState('lost');
      // If the session has ended, this request leads to the sign-in.
      this.#api.get('v1/whoami').catch(() => undefined);
      this.#retry = setTimeout(() => this.connect(), RETRY_MS);
    };
    for (const type of [...TYPES, 'webhook.test', 'channel.test'])
      source.addEventListener(type, ({ data }) => this.#add(JSON.parse(data)));
    source.addEventListener('feed.gap', () => this.#add(undefined));
  }

  stop() {
    clearTimeout(this.#retry);
    clearInterval(this.#ticks);
    this.#source?.close();
    document.removeEventListener('visibilitychange', this.#schedule);
  }

  #setState(state) {
    this.state = state;
    this.dispatchEvent(new Event('state'));
  }

  /** @param {FeedEvent | undefined} event undefined: events may be missing */
  #add(event) {
    if (event) this.#batch.push(event);
    if (!event || this.#batch.length > MAX_BATCH) this.#isWhole = false;
    this.#batch = this.#batch.slice(-MAX_BATCH);
    this.#schedule();
  }

  #schedule = () => {
    const hasNothing = this.#batch.length === 0 && this.#isWhole;
    if (hasNothing || this.#isScheduled || document.hidden) return;
    this.#isScheduled = true;
    setTimeout(() => {
      this.#isScheduled = false;
      const detail = { events: this.#batch, isWhole: this.#isWhole };
      this.#batch = [];
      this.#isWhole = true;
      this.dispatchEvent(new CustomEvent('batch', { detail }));
    }, BATCH_MS);
  };
}
