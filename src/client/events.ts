import { createParser } from 'eventsource-parser';
import type { Event, SubmissionEvent } from './api.ts';
import { pause, retryDelayMs } from './backoff.ts';
import { ConnectionError, isTransient } from './errors.ts';
import type { MetadataFilter } from './request.ts';

/**
 * An event of webhooks and the live feed. Its `type` determines its `data`. Ignore unknown types,
 * which a newer server may send.
 */
export type DawatchEvent = Event;

/** Sent only by the live feed: events after `after` up to `through` may be missing. */
export type FeedGap = { id: string; type: 'feed.gap'; data: { after: number; through: number } };

/** An event with its sequence number. Pass the number as `after` to resume after the event. */
export type FeedEvent = DawatchEvent & { seq: number };

/** Returns whether an event is about a submission, so that it has `data.submission`. */
export function isSubmissionEvent<Any extends DawatchEvent>(
  event: Any,
): event is Extract<Any, SubmissionEvent> {
  return 'submission' in event.data;
}

export type EventOptions = {
  /**
   * Start after the event with this sequence number; 0: with the first event. Default: only new
   * events.
   */
  after?: number;
  /** Only these types: exact ones, or wildcards like "submission.*". */
  types?: readonly string[];
  /** Only events about this submission. */
  submissionId?: string;
  /** Only events about submissions whose metadata has all these entries. */
  metadata?: MetadataFilter;
  /** Ends the iteration without an error. */
  signal?: AbortSignal;
  /** Called when a connection failed or ended, with the delay before the next one. */
  onRetry?: (retry: { error: Error; delayMs: number }) => void;
  /**
   * Called when events may be missing because the server has deleted them. The iteration continues
   * after them.
   */
  onGap?: (gap: FeedGap['data']) => void;
};

/** A connection without data for this long is closed. The server sends a heartbeat every 15 s. */
const SILENCE_MS = 45_000;

/**
 * Opens a stream after the event `after`, or with new events. Throws ApiError or ConnectionError.
 */
export type OpenStream = (after: string | undefined, signal: AbortSignal) => Promise<Response>;

/**
 * Yields every event once and in order over any number of connections. Throws an ApiError for
 * permanent errors: a refused key or an invalid filter.
 */
export async function* readEvents(
  open: OpenStream,
  options: EventOptions & {
    /** Called for each part of the stream, also for heartbeats, and first when it has begun. */
    onResponse?: () => void;
  },
): AsyncGenerator<FeedEvent, void, undefined> {
  const { signal, onRetry, onGap, onResponse } = options;
  let position = options.after === undefined ? undefined : String(options.after);
  let failures = 0;
  while (!signal?.aborted) {
    const connection = openConnection(signal);
    let error: Error = new ConnectionError('the server ended the stream');
    try {
      const response = await open(position, connection.signal);
      failures = 0;
      for await (const { id, data } of blocksOf(response, connection.received)) {
        onResponse?.();
        const event = data === undefined ? undefined : (JSON.parse(data) as DawatchEvent | FeedGap);
        if (event?.type === 'feed.gap') onGap?.(event.data);
        else if (event) yield { ...event, seq: Number(id) };
        if (id !== undefined) position = id;
      }
    } catch (thrown) {
      if (signal?.aborted) return;
      if (!isTransient(thrown)) throw thrown;
      error = thrown;
    } finally {
      connection.close();
    }
    if (signal?.aborted) return;
    failures += 1;
    const retryAfterMs = 'retryAfterS' in error ? Number(error.retryAfterS ?? 0) * 1_000 : 0;
    const delayMs = Math.max(retryAfterMs, retryDelayMs(failures, Math.random));
    onRetry?.({ error, delayMs });
    await pause(delayMs, signal);
  }
}

/** Returns a signal for one connection. It aborts with the caller's signal or after SILENCE_MS. */
function openConnection(outer: AbortSignal | undefined) {
  const controller = new AbortController();
  const abort = () => controller.abort(outer?.reason);
  outer?.addEventListener('abort', abort);
  const tooSilent = () =>
    controller.abort(new ConnectionError(`no data for ${SILENCE_MS / 1_000} s`));
  let timer = setTimeout(tooSilent, SILENCE_MS);
  return {
    signal: controller.signal,
    received(): void {
      clearTimeout(timer);
      timer = setTimeout(tooSilent, SILENCE_MS);
    },
    close(): void {
      clearTimeout(timer);
      outer?.removeEventListener('abort', abort);
      controller.abort();
    },
  };
}

/** A part of an event stream. Without data, it only updates the position. */
type Block = { id: string | undefined; data: string | undefined };

/**
 * Yields the parts of a stream as they arrive. An incomplete last one is dropped. Throws
 * ConnectionError if the connection is lost.
 */
async function* blocksOf(
  response: Response,
  onChunk: () => void,
): AsyncGenerator<Block, void, undefined> {
  const blocks: Block[] = [];
  const parser = createParser({
    onEvent: ({ id, data }) => blocks.push({ id, data }),
    onComment: (text) => blocks.push({ id: / (\d+)$/.exec(text)?.[1], data: undefined }),
  });
  const decoder = new TextDecoder();
  // Some browsers cannot iterate over a stream.
  const reader = response.body?.getReader();
  try {
    for (let read = await reader?.read(); read?.value; read = await reader?.read()) {
      onChunk();
      parser.feed(decoder.decode(read.value, { stream: true }));
      yield* blocks.splice(0);
    }
  } catch (error) {
    throw new ConnectionError('the connection was lost', { cause: error });
  } finally {
    // Stops reading when the caller abandons the iteration.
    await reader?.cancel().catch(() => undefined);
  }
}
