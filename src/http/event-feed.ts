import type { Readable } from 'node:stream';
import type { Log } from '../monitor/log-events.ts';
import type { Clock } from '../monitor/ports.ts';
import { FeedPage } from './feed-page.ts';
import { FeedReader, type FeedReaderOptions } from './feed-reader.ts';
import type { EventLog } from './ports.ts';

const HEARTBEAT_MS = 15_000;
/** Events read at once; readers get a heartbeat at once. In between everything else has its turn. */
const PAGE = 100;
const SLICE = 500;
/** A telling costs a write for each reader, however much it tells: what comes sooner after one is told with the next. */
const TELL_EVERY_MS = 25;

/** Everybody who reads the live feed. What is new is read from the log once and made into bytes once, for all of them. */
export class EventFeed {
  readonly #deps: { events: EventLog; clock: Clock; log: Log };
  readonly #readers = new Set<FeedReader>();
  readonly #live = new Set<FeedReader>();
  /** The newest event that was told to everybody who is live. */
  #position = 0;
  #isScheduled = false;
  #isClosed = false;
  #cancelHeartbeat: (() => void) | undefined;
  readonly #unlisten: () => void;

  constructor(deps: { events: EventLog; clock: Clock; log: Log }) {
    this.#deps = deps;
    this.#unlisten = deps.events.onAppended(() => this.#schedule());
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** The body of a response: everything after `position` that passes the filter, for as long as the client stays. */
  open(reading: Pick<FeedReaderOptions, 'position' | 'filter' | 'response' | 'mayRead'>): Readable {
    const reader = new FeedReader({
      ...reading,
      log: this.#deps.events,
      onCaughtUp: (caughtUp) => this.#join(caughtUp),
      onFailed: (error) => this.#deps.log.error({ err: error }, 'feed.failed'),
    });
    this.#readers.add(reader);
    reader.once('close', () => {
      this.#readers.delete(reader);
      this.#live.delete(reader);
    });
    if (this.#isClosed) reader.end();
    else this.#cancelHeartbeat ??= this.#deps.clock.after(HEARTBEAT_MS, () => this.#beat());
    return reader;
  }

  /** Ends every stream. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#unlisten();
    this.#cancelHeartbeat?.();
    for (const reader of this.#readers) reader.end();
  }

  #join(reader: FeedReader): void {
    // With others there already, what it has beyond them comes to it once more; it passes that over.
    if (this.#live.size === 0) this.#position = reader.position;
    this.#live.add(reader);
  }

  #schedule(delayMs = 0): void {
    if (this.#isScheduled || this.#live.size === 0) return;
    this.#isScheduled = true;
    this.#deps.clock.after(delayMs, () => {
      this.#isScheduled = false;
      if (this.#isClosed) return;
      try {
        this.#tellNews();
      } catch (error) {
        // They come back, and are told then what is wrong.
        for (const reader of this.#live) reader.end();
        this.#deps.log.error({ err: error }, 'feed.failed');
      }
    });
  }

  #tellNews(): void {
    const { events } = this.#deps;
    const page = new FeedPage(events.after(this.#position, PAGE));
    if (page.events.length === 0) return;
    for (const reader of this.#live) if (!reader.tell(page)) this.#live.delete(reader);
    this.#position = page.position;
    this.#schedule(page.position < events.newestSeq() ? 0 : TELL_EVERY_MS);
  }

  /** In slices: with thousands of readers the rest of the server must not wait for all of them. */
  #beat(): void {
    const readers = [...this.#readers];
    const slice = (from: number) => {
      for (const reader of readers.slice(from, from + SLICE)) if (!reader.beat()) this.#dropped(reader);
      const next = from + SLICE;
      const isThrough = next >= readers.length;
      if (isThrough && this.#readers.size === 0) this.#cancelHeartbeat = undefined;
      else if (isThrough) this.#cancelHeartbeat = this.#deps.clock.after(HEARTBEAT_MS, () => this.#beat());
      else this.#cancelHeartbeat = this.#deps.clock.after(0, () => slice(next));
    };
    slice(0);
  }

  #dropped(reader: FeedReader): void {
    this.#live.delete(reader);
    this.#deps.log.warn({ seq: reader.position, waiting_bytes: reader.waitingBytes }, 'feed.reader_dropped');
  }
}
