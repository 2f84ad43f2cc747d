import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { SEVERAL } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { explainIssue } from '../lib/explain-issue.ts';
import { DamagedRowError } from '../lib/stored.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { canonicalId } from '../submissions/submission.ts';
import { type DamagedEvent, type EventRecord, toEventJson } from './event-body.ts';
import type { FeedLog } from './event-log.ts';
import { createMatcher, eventTypeSchema, metadataFilterSchema } from './webhook.ts';

export type EventFilter = (event: EventRecord) => boolean;

/** The `type` parameter: comma-separated, repeatable. */
export const typesSchema = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => [value].flat().flatMap((text) => text.split(',')))
  .superRefine((types, context) => {
    for (const type of types)
      addIssues(context, eventTypeSchema.safeParse(type, { error: explainIssue }));
  })
  .describe(
    'Only events of these types: exact ones, or wildcards like submission.*; comma-separated or repeated',
  )
  .meta(SEVERAL);

/** The `metadata` parameter: the metadata filter of a webhook as JSON. */
export const metadataQuerySchema = z
  .string()
  .transform((text, context) => {
    const filter = metadataFilterSchema.safeParse(parseFilter(text), { error: explainIssue });
    addIssues(context, filter);
    return filter.data ?? z.NEVER;
  })
  .describe('Only events about submissions with this metadata, as JSON: {"team":"billing"}');

/**
 * The filter without conditions, which most readers use. FeedPage recognizes it and shares the
 * bytes between them.
 */
export const matchAll: EventFilter = () => true;

/**
 * Returns a filter for the given types, submission and metadata; undefined conditions match every
 * event.
 */
export function filterOf(query: {
  types: readonly string[] | undefined;
  submissionId: string | undefined;
  metadata: Record<string, unknown> | undefined;
}): EventFilter {
  if (Object.values(query).every((condition) => condition === undefined)) return matchAll;
  const { types = ['*'], submissionId, metadata = null } = query;
  const matches = createMatcher({ types, metadata });
  const ids = submissionId === undefined ? undefined : [submissionId, canonicalId(submissionId)];
  return (event) => {
    const submission = 'submission' in event ? event.submission : undefined;
    if (ids && !(submission && ids.includes(submission.submissionId))) return false;
    return matches({ type: event.type, metadata: submission?.metadata ?? null });
  };
}

/** Reports the issues for the parameter as a whole, with the path in the message. */
function addIssues(context: z.core.$RefinementCtx, { error }: z.ZodSafeParseResult<unknown>): void {
  for (const { path, message } of error?.issues ?? [])
    context.addIssue({ code: 'custom', message: [...path, message].join(': ') });
}

/** Parses the filter; undefined if it is not JSON or has the key __proto__. */
function parseFilter(text: string): unknown {
  try {
    const filter: unknown = JSON.parse(text);
    return filter !== null && typeof filter === 'object' && Object.hasOwn(filter, '__proto__')
      ? undefined
      : filter;
  } catch {
    return undefined;
  }
}

/** Type of the event that reports missing events. It is not in the log. */
const GAP_TYPE = 'feed.gap';

/**
 * Returns a frame reporting that events after `after`, up to and including `through`, may be
 * missing.
 */
function gapFrame(
  { after, through }: { after: number; through: number },
  position: number,
): string {
  const event = { id: `gap_${after}_${through}`, type: GAP_TYPE, data: { after, through } };
  return `id: ${position}\nevent: ${GAP_TYPE}\ndata: ${JSON.stringify(event)}\n\n`;
}

type PageEvent = EventRecord | DamagedEvent;

/**
 * Consecutive events after a position, each serialized once for all readers (row feed: 200 events/s
 * to 1000 readers).
 */
export class FeedPage {
  #events: readonly PageEvent[] = [];
  #position: number;
  readonly #frames = new Map<PageEvent, Buffer>();
  /** The bytes for unfiltered readers at the same position. */
  #unfiltered: { after: number; bytes: Buffer } | undefined;

  constructor(position: number) {
    this.#position = position;
  }

  /** Number of the newest event, or the initial position. */
  get position(): number {
    return this.#position;
  }

  get size(): number {
    return this.#events.length;
  }

  /** Total length of the upstream data in the events, which dominates their size. */
  get chars(): number {
    return this.#events.reduce((sum, event) => sum + dataCharsOf(event), 0);
  }

  /** Appends events. */
  add(events: readonly PageEvent[]): void {
    this.#events = [...this.#events, ...events];
    this.#position = events.at(-1)?.seq ?? this.#position;
    if (events.length > 0) this.#unfiltered = undefined;
  }

  /** Removes events up to and including `through`, which every reader has received. */
  drop(through: number): void {
    for (const event of this.#events) if (event.seq <= through) this.#frames.delete(event);
    this.#events = this.#events.filter(({ seq }) => seq > through);
  }

  /**
   * Returns the frames of events after `position` that pass the filter; undefined if there are
   * none.
   */
  bytesFor(position: number, filter: EventFilter): Buffer | undefined {
    if (filter === matchAll && this.#unfiltered?.after === position) return this.#unfiltered.bytes;
    const matching = this.#events.filter(
      (event) => event.seq > position && ('damage' in event || filter(event)),
    );
    if (matching.length === 0) return undefined;
    const bytes = Buffer.concat(matching.map((event) => this.#frameOf(event)));
    if (filter === matchAll) this.#unfiltered = { after: position, bytes };
    return bytes;
  }

  #frameOf(event: PageEvent): Buffer {
    const frame = this.#frames.get(event) ?? toFrame(event);
    this.#frames.set(event, frame);
    return frame;
  }
}

function dataCharsOf(event: PageEvent): number {
  return 'submission' in event
    ? (event.submission.envelope?.length ?? 0) + (event.previous.envelope?.length ?? 0)
    : 0;
}

/** Serializes an event. A damaged one becomes a gap of one event, after which readers continue. */
function toFrame(event: PageEvent): Buffer {
  const { seq } = event;
  const gap = () => Buffer.from(gapFrame({ after: seq - 1, through: seq }, seq));
  if ('damage' in event) return gap();
  try {
    return Buffer.from(`id: ${seq}\nevent: ${event.type}\ndata: ${toEventJson(event)}\n\n`);
  } catch (error) {
    if (error instanceof DamagedRowError) return gap();
    throw error;
  }
}

/** A reader with more waiting bytes, which is more than most pages, is no longer live. */
const MAX_WAITING_BYTES = 512 * 1024;
/** Events read from the log at once for a reader that is catching up. */
const CATCH_UP_PAGE = 100;

/** Returns a frame without data that updates the position from which a client resumes. */
function positionFrame(comment: string, position: number): string {
  return `: ${comment}\nid: ${position}\n\n`;
}

export type FeedReaderOptions = {
  log: FeedLog;
  /** Number of the last event the client has. */
  position: number;
  filter: EventFilter;
  response: ServerResponse;
  /** Whether the credential is still valid. */
  mayRead: () => boolean;
  /** Called when the reader has every committed event and becomes live. */
  onCaughtUp: (reader: FeedReader) => void;
  onFailed: (error: unknown) => void;
};

/**
 * One reader of the live feed; the stream is the body of its response.
 *
 * A reader starts in catch-up: it reads pages from the log as fast as its client accepts them. When
 * a page is empty it becomes live, and `send` delivers new events. Both happen in one synchronous
 * step, so no event is skipped or repeated. A live reader with too many waiting bytes returns to
 * catch-up, which limits memory to about one page per reader.
 */
export class FeedReader extends Readable {
  readonly #options: FeedReaderOptions;
  #position: number;
  #isLive = false;
  #isScheduled = false;
  #isEnded = false;
  #hasRead = true;
  #reportedGap = 0;

  constructor(options: FeedReaderOptions) {
    super({ highWaterMark: 16 * 1024 });
    this.#options = options;
    this.#position = options.position;
    this.push(positionFrame('dawatch', this.#position));
  }

  /** Number of the last event that was sent or filtered out. */
  get position(): number {
    return this.#position;
  }

  get waitingBytes(): number {
    return this.readableLength + this.#options.response.writableLength;
  }

  /**
   * Sends new events to a live reader. Returns false if the client reads too slowly; the reader
   * then catches up by itself.
   */
  send(page: FeedPage): boolean {
    if (this.#isEnded || page.position <= this.#position) return true;
    const bytes = page.bytesFor(this.#position, this.#options.filter);
    if (bytes) this.push(bytes);
    this.#position = page.position;
    this.#isLive = this.waitingBytes <= MAX_WAITING_BYTES;
    return this.#isLive;
  }

  /**
   * Sends a heartbeat, and ends the stream if the credential is no longer valid. Returns false if
   * the client was disconnected, because it has read nothing since the last heartbeat although data
   * is waiting.
   */
  heartbeat(): boolean {
    if (this.#isEnded) return true;
    if (!this.#mayRead()) this.end();
    else if (this.waitingBytes === 0) this.push(positionFrame('heartbeat', this.#position));
    else if (!this.#hasRead) return this.#drop();
    this.#hasRead = false;
    return true;
  }

  /** Ends the stream, and destroys it if data is still waiting. */
  end(): void {
    if (this.#isEnded) return;
    if (this.waitingBytes > 0) this.#drop();
    else this.push(null);
    this.#isEnded = true;
  }

  override _read(): void {
    this.#hasRead = true;
    if (!this.#isLive) this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.destroyed || this.#isEnded) return;
      try {
        this.#readPage();
      } catch (error) {
        this.#drop();
        this.#options.onFailed(error);
      }
    });
  }

  #readPage(): void {
    const { log, filter, onCaughtUp } = this.#options;
    this.#reportGap(log.missingThrough());
    const page = new FeedPage(this.#position);
    page.add(log.after(this.#position, CATCH_UP_PAGE));
    if (page.size === 0) {
      // A client that resumes from here does not need the same gap again.
      this.#position = Math.max(this.#position, this.#reportedGap);
      this.#isLive = true;
      onCaughtUp(this);
      return;
    }
    const bytes = page.bytesFor(this.#position, filter);
    this.#position = page.position;
    if (!bytes || this.push(bytes)) this.#schedule();
  }

  /** Reports missing events, and reports them again if pruning removes more during catch-up. */
  #reportGap(through: number): void {
    if (through <= this.#position || through <= this.#reportedGap) return;
    this.#reportedGap = through;
    this.push(gapFrame({ after: this.#position, through }, this.#position));
  }

  /** Returns false if the ledger cannot be read, too: a client that reconnects gets the problem. */
  #mayRead(): boolean {
    try {
      return this.#options.mayRead();
    } catch (error) {
      this.#options.onFailed(error);
      return false;
    }
  }

  #drop(): false {
    this.#isEnded = true;
    this.#options.response.destroy();
    return false;
  }
}

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
