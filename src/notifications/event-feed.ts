import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { type Authenticator, mayContinue } from '../access/access.ts';
import { operations, sendProblem } from '../http/problems.ts';
import { integer, SEVERAL, type TypedServer } from '../http/typed-server.ts';
import type { Clock } from '../lib/clock.ts';
import { explainIssue } from '../lib/explain-issue.ts';
import { DamagedRowError, isObject, tryParse } from '../lib/json.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { canonicalId } from '../submissions/submission.ts';
import { submissionIdSchema } from '../submissions/track-request.ts';
import { createMatcher, eventTypeSchema, metadataFilterSchema } from './delivery.ts';
import { type DamagedEvent, type EventRecord, toEventJson } from './event-body.ts';
import type { EventLog } from './event-log.ts';

export type EventFilter = (event: EventRecord) => boolean;

/** Type of the event that reports missing events. It is not in the log. */
const GAP_TYPE = 'feed.gap';

/** Reports that events after `after`, through `through`, may be missing. */
function gapFrame(
  { after, through }: { after: number; through: number },
  position: number,
): string {
  const event = { id: `gap_${after}_${through}`, type: GAP_TYPE, data: { after, through } };
  return `id: ${position}\nevent: ${GAP_TYPE}\ndata: ${JSON.stringify(event)}\n\n`;
}

type FeedEvent = EventRecord | DamagedEvent;

/** Each event is serialized once for all readers. */
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

const PAGE = 100;

/**
 * Updates the position from which clients resume. The comment is for parsers that drop the frame.
 */
function positionFrame(comment: string, position: number): string {
  return `: ${comment} ${position}\nid: ${position}\n\n`;
}

export type FeedLog = Pick<EventLog, 'newestSeq' | 'missingThrough' | 'after' | 'onAppended'>;

/** The events after a position. `isLast`: there were no more. `missingThrough`: see EventLog. */
type Page = { after: number; missingThrough: number; events: FeedEvent[]; isLast: boolean };

export type Reading = {
  position: number;
  filter: EventFilter;
  response: ServerResponse;
  mayRead: () => boolean;
};

type FeedReaderDeps = {
  pageAfter: (seq: number) => Page;
  onFailed: (error: unknown) => void;
};

/**
 * One reader; the stream is the body of its response. Reads pages as fast as its client accepts
 * them, then on `wake`. Holds about two pages.
 */
export class FeedReader extends Readable {
  readonly #reading: Reading;
  readonly #deps: FeedReaderDeps;
  #position: number;
  /** Whether there may be events that it has not read. */
  #isBehind = true;
  #isScheduled = false;
  #isEnded = false;
  #hasRead = true;
  #reportedGap = 0;

  constructor(reading: Reading, deps: FeedReaderDeps) {
    super({ highWaterMark: 16 * 1024 });
    this.#reading = reading;
    this.#deps = deps;
    this.#position = reading.position;
    this.push(positionFrame('dawatch', this.#position));
  }

  get position(): number {
    return this.#position;
  }

  get waitingBytes(): number {
    return this.readableLength + this.#reading.response.writableLength;
  }

  wake(): void {
    this.#isBehind = true;
    if (!this.#isScheduled) this.#read();
  }

  /**
   * Ends the stream for an invalid credential. Returns false if the client was disconnected: it has
   * read nothing since the last heartbeat although data is waiting.
   */
  heartbeat(): boolean {
    if (this.#isEnded) return true;
    if (!this.#mayRead()) this.end();
    else if (this.waitingBytes === 0) this.push(positionFrame('heartbeat', this.#position));
    else if (!this.#hasRead) {
      this.#drop();
      return false;
    }
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
    if (this.#isBehind) this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#read();
    });
  }

  #read(): void {
    if (this.destroyed || this.#isEnded) return;
    if (this.readableLength >= this.readableHighWaterMark) return;
    try {
      this.#readPage();
    } catch (error) {
      this.end();
      this.#deps.onFailed(error);
    }
  }

  #readPage(): void {
    const { missingThrough, events, isLast } = this.#deps.pageAfter(this.#position);
    this.#reportGap(missingThrough);
    this.#isBehind = !isLast;
    const newest = events.at(-1);
    // A client that resumes from here does not need the same gap again.
    this.#position = newest?.seq ?? Math.max(this.#position, this.#reportedGap);
    const { filter } = this.#reading;
    const wanted = events.filter((event) => 'damage' in event || filter(event));
    if (wanted.length > 0) this.push(Buffer.concat(wanted.map(frameOf)));
    if (this.#isBehind) this.#schedule();
  }

  /** Reports missing events, and reports them again if pruning removes more meanwhile. */
  #reportGap(through: number): void {
    if (through <= this.#position || through <= this.#reportedGap) return;
    this.#reportedGap = through;
    this.push(gapFrame({ after: this.#position, through }, this.#position));
  }

  /** Returns false if the ledger cannot be read, too: a client that reconnects gets the problem. */
  #mayRead(): boolean {
    try {
      return this.#reading.mayRead();
    } catch (error) {
      this.#deps.onFailed(error);
      return false;
    }
  }

  #drop(): void {
    this.#isEnded = true;
    this.#reading.response.destroy();
  }
}

const HEARTBEAT_MS = 15_000;
/** Pause after events were sent: a write costs the same for one event and for many (row feed). */
const REST_MS = 25;

/** The live feed of all readers. Readers at the same position share what is read from the log. */
export class EventFeed {
  readonly #deps: { events: FeedLog; clock: Clock; log: Log };
  readonly #readers = new Set<FeedReader>();
  /** The page that was read last. Valid until the readers are woken. */
  #page: Page | undefined;
  #hasNew = false;
  #isResting = false;
  #isClosed = false;
  #cancelHeartbeat: (() => void) | undefined;
  readonly #unsubscribe: () => void;

  constructor(deps: { events: FeedLog; clock: Clock; log: Log }) {
    this.#deps = deps;
    this.#unsubscribe = deps.events.onAppended(() => {
      this.#hasNew = true;
      if (!this.#isResting) this.#wakeAfter(0);
    });
  }

  /** All events after `position` that pass the filter, until the client disconnects. */
  open(reading: Reading): Readable {
    const { clock, log } = this.#deps;
    const reader = new FeedReader(reading, {
      pageAfter: (seq) => this.#pageAfter(seq),
      onFailed: (error) => log.error({ err: error }, 'feed.failed'),
    });
    this.#readers.add(reader);
    reader.once('close', () => this.#readers.delete(reader));
    if (this.#isClosed) reader.end();
    else this.#cancelHeartbeat ??= clock.after(HEARTBEAT_MS, () => this.#heartbeat());
    return reader;
  }

  close(): void {
    this.#isClosed = true;
    this.#unsubscribe();
    this.#cancelHeartbeat?.();
    for (const reader of this.#readers) reader.end();
  }

  #pageAfter(seq: number): Page {
    const { events } = this.#deps;
    if (this.#page?.after === seq) return this.#page;
    const read = events.after(seq, PAGE);
    this.#page = {
      after: seq,
      missingThrough: events.missingThrough(),
      events: read,
      isLast: (read.at(-1)?.seq ?? Infinity) >= events.newestSeq(),
    };
    return this.#page;
  }

  /** Wakes the readers if there are new events, then rests. */
  #wakeAfter(delayMs: number): void {
    this.#isResting = true;
    this.#deps.clock.after(delayMs, () => {
      this.#isResting = false;
      if (this.#isClosed || !this.#hasNew) return;
      this.#hasNew = false;
      this.#page = undefined;
      for (const reader of this.#readers) reader.wake();
      this.#wakeAfter(REST_MS);
    });
  }

  #heartbeat(): void {
    for (const reader of this.#readers)
      if (!reader.heartbeat())
        this.#deps.log.warn(
          { seq: reader.position, waiting_bytes: reader.waitingBytes },
          'feed.slow_client_closed',
        );
    this.#cancelHeartbeat =
      this.#readers.size === 0
        ? undefined
        : this.#deps.clock.after(HEARTBEAT_MS, () => this.#heartbeat());
  }
}

const typesSchema = z
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

const metadataQuerySchema = z
  .string()
  .transform((text, context) => {
    const filter = metadataFilterSchema.safeParse(parseFilter(text), { error: explainIssue });
    addIssues(context, filter);
    return filter.data ?? z.NEVER;
  })
  .describe('Only events about submissions with this metadata, as JSON: {"team":"billing"}');

/** Undefined conditions match every event. */
function filterOf(query: {
  types: readonly string[] | undefined;
  submissionId: string | undefined;
  metadata: Record<string, unknown> | undefined;
}): EventFilter {
  if (Object.values(query).every((condition) => condition === undefined)) return () => true;
  const { types = ['*'], submissionId, metadata = null } = query;
  const matches = createMatcher({ types, metadata });
  const id = submissionId && canonicalId(submissionId);
  return (event) => {
    const submission = 'submission' in event ? event.submission : undefined;
    if (id !== undefined && submission?.submissionId !== id) return false;
    return matches({ type: event.type, metadata: submission?.metadata ?? null });
  };
}

function addIssues(context: z.core.$RefinementCtx, { error }: z.ZodSafeParseResult<unknown>): void {
  for (const { path, message } of error?.issues ?? [])
    context.addIssue({ code: 'custom', message: [...path, message].join(': ') });
}

/** Parses the filter; undefined if it is not JSON or has the key __proto__. */
function parseFilter(text: string): unknown {
  const filter = tryParse(text);
  return isObject(filter) && Object.hasOwn(filter, '__proto__') ? undefined : filter;
}

const seqSchema = z
  .string()
  .regex(/^\d{1,15}$/, 'must be the sequence number of an event: a whole number, 0 or more')
  .meta(integer({ minimum: 0 }));

const streamResponse = {
  description: 'Server-sent events, until either side closes the connection',
  content: {
    'text/event-stream': {
      schema: z
        .string()
        .describe(
          'Per event: `id:` its sequence number, `event:` its type, `data:` the event as JSON on one line, the same ' +
            'object that a webhook receives. A comment is sent every 15 s; blocks without data only update the position. An ' +
            'event `feed.gap` at the start reports that events up to `data.through` may be missing, because they were pruned ' +
            'or a backup was restored; later in the stream it replaces an event that is damaged in the ledger.',
        ),
    },
  },
};

const OPERATIONS = operations('events', {
  readEvents: {
    summary: 'Stream events',
    description:
      'Resumes after the event in Last-Event-ID or `after` (the header has precedence), otherwise starts with the next ' +
      'event. No event is skipped or repeated; `feed.gap` reports pruned ones. A reader that reads nothing between two ' +
      'heartbeats although data is waiting is disconnected and can resume. A stream ends at the next heartbeat after its ' +
      'credential has expired or was revoked, or its session has ended.',
    headers: z.looseObject({
      'last-event-id': seqSchema.optional().describe('The `id` of the last received event'),
    }),
    querystring: z.strictObject({
      after: seqSchema
        .optional()
        .describe('The same for a first request; 0 starts at the first event'),
      type: typesSchema.optional(),
      submission_id: submissionIdSchema.optional().describe('Only events about this submission'),
      metadata: metadataQuerySchema.optional(),
    }),
    response: { 200: streamResponse },
  },
});

export function registerEvents(
  app: TypedServer,
  deps: { events: FeedLog; feed: EventFeed; authenticator: Authenticator },
): void {
  const { events, feed, authenticator } = deps;
  app.addHook('preClose', async () => feed.close());

  app.get(
    '/v1/events',
    {
      // A HEAD request would open a stream without a reader.
      exposeHeadRoute: false,
      config: { staysOpen: true, roles: ['service', 'operator'] },
      schema: OPERATIONS.readEvents,
    },
    (request, reply) => {
      const { after, type, submission_id, metadata } = request.query;
      const lastEventId = request.headers['last-event-id'];
      const newest = events.newestSeq();
      const position = Number(lastEventId ?? after ?? newest);
      if (position > newest) {
        const pointer = lastEventId === undefined ? 'after' : 'last-event-id';
        const reason = `there is no event ${position} yet, the newest is ${newest}; is it from another ledger?`;
        const place = lastEventId === undefined ? 'query' : 'header';
        sendProblem(reply, 400, `${place} ${pointer}: ${reason}`, [{ pointer, detail: reason }]);
        return;
      }
      const filter = filterOf({ types: type, submissionId: submission_id, metadata });
      reply.headers({
        'content-type': 'text/event-stream',
        'cache-control': 'no-store',
        // Disables buffering in nginx.
        'x-accel-buffering': 'no',
        // Closing the server then does not wait for another request on this connection.
        connection: 'close',
      });
      // Without chunks a write is one piece instead of three for each reader (row feed). The
      // connection's end ends the body.
      reply.raw.removeHeader('transfer-encoding');
      const mayRead = () => mayContinue(request, authenticator);
      reply.send(feed.open({ position, filter, response: reply.raw, mayRead }) as never);
    },
  );
}
