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
 * Returns a filter for the given types, submission and metadata; undefined conditions match every
 * event.
 */
export function filterOf(query: {
  types: readonly string[] | undefined;
  submissionId: string | undefined;
  metadata: Record<string, unknown> | undefined;
}): EventFilter {
  if (Object.values(query).every((condition) => condition === undefined)) return () => true;
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

type FeedEvent = EventRecord | DamagedEvent;

/** Each event is serialized once for all readers of the same page. */
const frames = new WeakMap<FeedEvent, Buffer>();

function frameOf(event: FeedEvent): Buffer {
  const frame = frames.get(event) ?? toFrame(event);
  frames.set(event, frame);
  return frame;
}

/** Serializes an event. A damaged one becomes a gap of one event, after which readers continue. */
function toFrame(event: FeedEvent): Buffer {
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

/** The frames of a whole page, shared by all readers that get all of it. */
const pages = new WeakMap<readonly FeedEvent[], Buffer>();

/** A reader with more waiting bytes, which is more than most pages, is no longer live. */
const MAX_WAITING_BYTES = 512 * 1024;
/** Events read from the log at once. */
const PAGE = 100;

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
   * Sends new events to a live reader, which ignores those that it has. Returns false if the client
   * reads too slowly; the reader then catches up by itself.
   */
  send(events: readonly FeedEvent[]): boolean {
    if (this.#isEnded) return true;
    this.#pushEvents(events);
    this.#isLive = this.waitingBytes <= MAX_WAITING_BYTES;
    return this.#isLive;
  }

  /** Returns false if the client should read first. */
  #pushEvents(events: readonly FeedEvent[]): boolean {
    const { filter } = this.#options;
    const wanted = events.filter(
      (event) => event.seq > this.#position && ('damage' in event || filter(event)),
    );
    this.#position = Math.max(this.#position, events.at(-1)?.seq ?? 0);
    if (wanted.length < events.length) {
      for (const event of wanted) this.push(frameOf(event));
      return this.readableLength < this.readableHighWaterMark;
    }
    const page = pages.get(events) ?? Buffer.concat(events.map(frameOf));
    pages.set(events, page);
    return events.length === 0 || this.push(page);
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
    const { log, onCaughtUp } = this.#options;
    this.#reportGap(log.missingThrough());
    const events = log.after(this.#position, PAGE);
    if (events.length === 0) {
      // A client that resumes from here does not need the same gap again.
      this.#position = Math.max(this.#position, this.#reportedGap);
      this.#isLive = true;
      onCaughtUp(this);
    } else if (this.#pushEvents(events)) this.#schedule();
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
/** Pause after events were sent: a write costs the same for one event and for many (row feed). */
const REST_MS = 25;

type EventFeedDeps = { events: FeedLog; clock: Clock; log: Log };

/** The live feed of all readers. New events are read from the log once for all live readers. */
export class EventFeed {
  readonly #deps: EventFeedDeps;
  readonly #readers = new Set<FeedReader>();
  readonly #live = new Set<FeedReader>();
  /** Number of the last event that was sent to the live readers. */
  #position = 0;
  #isScheduled = false;
  #isClosed = false;
  #cancelHeartbeat: (() => void) | undefined;
  readonly #unsubscribe: () => void;

  constructor(deps: EventFeedDeps) {
    this.#deps = deps;
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
      this.#live.delete(reader);
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
    if (this.#live.size === 0) this.#position = reader.position;
    this.#live.add(reader);
  }

  #schedule(delayMs = 0): void {
    if (this.#isScheduled || this.#live.size === 0) return;
    this.#isScheduled = true;
    this.#deps.clock.after(delayMs, () => {
      this.#isScheduled = false;
      if (this.#isClosed || this.#live.size === 0) return;
      try {
        this.#sendNew();
      } catch (error) {
        // Clients reconnect and then get the problem.
        for (const reader of this.#live) reader.end();
        this.#deps.log.error({ err: error }, 'feed.failed');
      }
    });
  }

  #sendNew(): void {
    const { events } = this.#deps;
    const page = events.after(this.#position, PAGE);
    const last = page.at(-1);
    if (!last) return;
    this.#position = last.seq;
    for (const reader of this.#live) if (!reader.send(page)) this.#live.delete(reader);
    this.#schedule(last.seq < events.newestSeq() ? 0 : REST_MS);
  }

  #heartbeat(): void {
    for (const reader of this.#readers) if (!reader.heartbeat()) this.#onDropped(reader);
    this.#cancelHeartbeat =
      this.#readers.size === 0
        ? undefined
        : this.#deps.clock.after(HEARTBEAT_MS, () => this.#heartbeat());
  }

  #onDropped(reader: FeedReader): void {
    this.#live.delete(reader);
    this.#deps.log.warn(
      { seq: reader.position, waiting_bytes: reader.waitingBytes },
      'feed.slow_client_closed',
    );
  }
}
