import type { Readable } from 'node:stream';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { FeedLog } from './event-log.ts';
import { FeedPage } from './feed-page.ts';
import { FeedReader, type FeedReaderOptions } from './feed-reader.ts';

const HEARTBEAT_MS = 15_000;
/** Limits of the page of unsent events: number of events, and characters of upstream data. */
const PAGE = 100;
const PAGE_CHARS = 64 * 1024;
/** Readers served without interruption by a round. The event loop continues between two slices. */
const READERS_PER_SLICE = 100;
/**
 * Pause between two rounds. A round costs one write for each reader, however many events it sends
 * (row feed).
 */
const REST_MS = 10;

type EventFeedDeps = { events: FeedLog; clock: Clock; log: Log };

/**
 * The live feed of all readers. New events are read from the log and serialized once for all live
 * readers, and are sent in rounds of slices (docs/decisions/0013). Each slice sends what is newest
 * at that time, so the positions of readers differ; the page holds all events after the least
 * position.
 */
export class EventFeed {
  readonly #deps: EventFeedDeps;
  readonly #readers = new Set<FeedReader>();
  readonly #live = new Set<FeedReader>();
  /** Events after the least position of the live readers. */
  #page: FeedPage;
  /** Live readers that the current round has not served yet. */
  #round: FeedReader[] = [];
  /** Position that every reader has reached after the current round. */
  #roundPosition = 0;
  #isScheduled = false;
  #isClosed = false;
  #cancelHeartbeat: (() => void) | undefined;
  readonly #unsubscribe: () => void;

  constructor(deps: EventFeedDeps) {
    this.#deps = deps;
    this.#page = new FeedPage(0);
    this.#unsubscribe = deps.events.onAppended(() => this.#schedule());
  }

  get readers(): number {
    return this.#readers.size;
  }

  /**
   * Returns the body of a response: all events after `position` that pass the filter, until the
   * client disconnects.
   */
  open(reading: Pick<FeedReaderOptions, 'position' | 'filter' | 'response' | 'mayRead'>): Readable {
    const reader = new FeedReader({
      ...reading,
      log: this.#deps.events,
      onCaughtUp: (caughtUp) => this.#addLive(caughtUp),
      onFailed: (error) => this.#deps.log.error({ err: error }, 'feed.failed'),
    });
    this.#readers.add(reader);
    reader.once('close', () => {
      this.#readers.delete(reader);
      this.#removeLive(reader);
    });
    if (this.#isClosed) reader.end();
    else this.#cancelHeartbeat ??= this.#deps.clock.after(HEARTBEAT_MS, () => this.#heartbeat());
    return reader;
  }

  /** Ends every stream. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#unsubscribe();
    this.#cancelHeartbeat?.();
    for (const reader of this.#readers) reader.end();
  }

  #addLive(reader: FeedReader): void {
    // Among other live readers it may be offered events that it has; it ignores those.
    if (this.#live.size === 0) this.#startAt(reader.position);
    this.#live.add(reader);
  }

  #removeLive(reader: FeedReader): void {
    this.#live.delete(reader);
    // Without live readers, the round and the page are obsolete.
    if (this.#live.size === 0) this.#startAt(0);
  }

  #schedule(delayMs = 0): void {
    if (this.#isScheduled || this.#live.size === 0) return;
    this.#isScheduled = true;
    this.#deps.clock.after(delayMs, () => {
      this.#isScheduled = false;
      if (this.#isClosed || this.#live.size === 0) return;
      try {
        this.#sendSlice();
      } catch (error) {
        // Clients reconnect and then get the problem.
        for (const reader of this.#live) reader.end();
        this.#deps.log.error({ err: error }, 'feed.failed');
      }
    });
  }

  #startAt(position: number): void {
    this.#page = new FeedPage(position);
    this.#round = [];
  }

  /**
   * Sends the newest events to the next slice of readers, and schedules the following slice or
   * round.
   */
  #sendSlice(): void {
    const { events } = this.#deps;
    const page = this.#page;
    if (page.size < PAGE && page.chars < PAGE_CHARS)
      page.add(events.after(page.position, PAGE - page.size));
    if (this.#round.length === 0) {
      if (page.size === 0) return;
      this.#round = [...this.#live];
      this.#roundPosition = page.position;
    }
    for (const reader of this.#round.splice(0, READERS_PER_SLICE))
      if (this.#live.has(reader) && !reader.send(page)) this.#removeLive(reader);
    if (this.#round.length > 0) {
      this.#schedule();
      return;
    }
    page.drop(this.#roundPosition);
    this.#schedule(page.position < events.newestSeq() ? 0 : REST_MS);
  }

  #heartbeat(): void {
    for (const reader of this.#readers) if (!reader.heartbeat()) this.#onDropped(reader);
    this.#cancelHeartbeat =
      this.#readers.size === 0
        ? undefined
        : this.#deps.clock.after(HEARTBEAT_MS, () => this.#heartbeat());
  }

  #onDropped(reader: FeedReader): void {
    this.#removeLive(reader);
    this.#deps.log.warn(
      { seq: reader.position, waiting_bytes: reader.waitingBytes },
      'feed.slow_client_closed',
    );
  }
}
