import type { Readable } from 'node:stream';
import type { Clock } from '../../domain/clock.ts';
import type { ReportUnreadable } from '../../domain/stored.ts';
import type { Log } from '../../logging/event-catalog.ts';
import type { EventLog } from '../ports.ts';
import { FeedPage } from './feed-page.ts';
import { FeedReader, type FeedReaderOptions } from './feed-reader.ts';

const HEARTBEAT_MS = 15_000;
/** The most that is told at once: so many events, and no more to these once the upstream's answers in them are so long. */
const PAGE = 100;
const PAGE_CHARS = 64 * 1024;
/** Readers that are told, or get a heartbeat, at once. In between everything else has its turn. */
const TOLD_AT_ONCE = 100;
const BEATS_AT_ONCE = 500;
/** A telling costs a write for each reader, however much it tells: so long after a round of them what is new waits for the next. */
const REST_MS = 10;

type EventFeedDeps = { events: EventLog; clock: Clock; log: Log; onUnreadable: ReportUnreadable };

/** Everybody who reads the live feed. What is new is read from the log once and made into bytes once, for all of them. */
export class EventFeed {
  readonly #deps: EventFeedDeps;
  readonly #readers = new Set<FeedReader>();
  readonly #live = new Set<FeedReader>();
  /** What is told to those who are live: what is behind the hindmost of them. */
  #page: FeedPage;
  /** Those of them whom this round has still to tell, and up to where it tells all of them. */
  #round: FeedReader[] = [];
  #toldToAll = 0;
  #isScheduled = false;
  #isClosed = false;
  #cancelHeartbeat: (() => void) | undefined;
  readonly #unlisten: () => void;

  constructor(deps: EventFeedDeps) {
    this.#deps = deps;
    this.#page = new FeedPage(0, deps.onUnreadable);
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
      onUnreadable: this.#deps.onUnreadable,
      onFailed: (error) => this.#deps.log.error({ err: error }, 'feed.failed'),
    });
    this.#readers.add(reader);
    reader.once('close', () => {
      this.#readers.delete(reader);
      this.#leave(reader);
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
    if (this.#live.size === 0) this.#startAt(reader.position);
    this.#live.add(reader);
  }

  #leave(reader: FeedReader): void {
    this.#live.delete(reader);
    // Nobody goes on with the round, or needs what is left of the page.
    if (this.#live.size === 0) this.#startAt(0);
  }

  #schedule(delayMs = 0): void {
    if (this.#isScheduled || this.#live.size === 0) return;
    this.#isScheduled = true;
    this.#deps.clock.after(delayMs, () => {
      this.#isScheduled = false;
      if (this.#isClosed || this.#live.size === 0) return;
      try {
        this.#tellSlice();
      } catch (error) {
        // They come back, and are told then what is wrong.
        for (const reader of this.#live) reader.end();
        this.#deps.log.error({ err: error }, 'feed.failed');
      }
    });
  }

  #startAt(position: number): void {
    this.#page = new FeedPage(position, this.#deps.onUnreadable);
    this.#round = [];
  }

  /**
   * One slice of a round through all readers. Each is told what is newest by then, so that it need not wait for a whole round
   * after it; and the rest of the server waits for no more than a slice.
   */
  #tellSlice(): void {
    const { events } = this.#deps;
    const page = this.#page;
    if (page.size < PAGE && page.chars < PAGE_CHARS) page.add(events.after(page.position, PAGE - page.size));
    if (this.#round.length === 0) {
      if (page.size === 0) return;
      this.#round = [...this.#live];
      this.#toldToAll = page.position;
    }
    for (const reader of this.#round.splice(0, TOLD_AT_ONCE))
      if (this.#live.has(reader) && !reader.send(page)) this.#leave(reader);
    if (this.#round.length > 0) {
      this.#schedule();
      return;
    }
    page.drop(this.#toldToAll);
    this.#schedule(page.position < events.newestSeq() ? 0 : REST_MS);
  }

  /** In slices, as well. */
  #beat(): void {
    const readers = [...this.#readers];
    const slice = (from: number) => {
      for (const reader of readers.slice(from, from + BEATS_AT_ONCE)) if (!reader.heartbeat()) this.#dropped(reader);
      const next = from + BEATS_AT_ONCE;
      const isThrough = next >= readers.length;
      if (isThrough && this.#readers.size === 0) this.#cancelHeartbeat = undefined;
      else if (isThrough) this.#cancelHeartbeat = this.#deps.clock.after(HEARTBEAT_MS, () => this.#beat());
      else this.#cancelHeartbeat = this.#deps.clock.after(0, () => slice(next));
    };
    slice(0);
  }

  #dropped(reader: FeedReader): void {
    this.#leave(reader);
    this.#deps.log.warn({ seq: reader.position, waiting_bytes: reader.waitingBytes }, 'feed.slow_client_closed');
  }
}
