import { pause, retryDelayMs } from './backoff.ts';
import { ConnectionError, isTransient } from './errors.ts';
import type { DawatchEvent, FeedGap } from './shapes.ts';
import { parseSse } from './sse.ts';
import type { MetadataFilter } from './webhooks.ts';

/** An event with its sequence number: give that as `after` to go on behind it. */
export type FeedEvent = DawatchEvent & { seq: number };

export type EventOptions = {
  /** Begin behind the event with this sequence number; 0: from the very first one. Absent: with what happens from now on. */
  after?: number;
  /** Only these types: exact ones, or wildcards like "submission.*". */
  types?: readonly string[];
  /** Only events about this submission. */
  submissionId?: string;
  /** Only events about submissions whose metadata has each of these, with exactly this value. */
  metadata?: MetadataFilter;
  /** Ends the reading: the loop over the events is left as if there were no more. */
  signal?: AbortSignal;
  /** Hears of every connection that failed or ended, and in how many milliseconds there is another one. */
  onRetry?: (retry: { error: Error; delayMs: number }) => void;
  /** Hears that events may be missing, because the server keeps them no longer. The next event comes from behind them. */
  onGap?: (gap: FeedGap['data']) => void;
};

/** A server that says nothing for so long, not even a heartbeat (every 15 s), is taken for gone. */
const SILENCE_MS = 45_000;

/** Opens a stream behind the event `after`, or from now on. Throws ApiError or ConnectionError. */
export type OpenStream = (after: string | undefined, signal: AbortSignal) => Promise<Response>;

/**
 * Every event once and in order, over as many connections as it takes. Throws only what another try wouldn't mend, as an
 * ApiError: a key that isn't accepted, or a filter that isn't valid.
 */
export async function* readEvents(open: OpenStream, options: EventOptions): AsyncGenerator<FeedEvent, void, undefined> {
  const { signal, onRetry, onGap } = options;
  let position = options.after === undefined ? undefined : String(options.after);
  let failures = 0;
  while (!signal?.aborted) {
    const connection = openConnection(signal);
    let error: Error = new ConnectionError('the server ended the stream');
    try {
      const response = await open(position, connection.signal);
      failures = 0;
      for await (const { id, data } of parseSse(connection.bytesOf(response))) {
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
    const askedMs = 'retryAfterS' in error ? Number(error.retryAfterS ?? 0) * 1_000 : 0;
    const delayMs = Math.max(askedMs, retryDelayMs(failures, Math.random));
    onRetry?.({ error, delayMs });
    await pause(delayMs, signal);
  }
}

/** What one connection needs: it ends when the caller wants it to, or when the server has been silent for too long. */
function openConnection(outer: AbortSignal | undefined) {
  const controller = new AbortController();
  const abort = () => controller.abort(outer?.reason);
  outer?.addEventListener('abort', abort);
  const tooSilent = () => controller.abort(new ConnectionError(`nothing was heard for ${SILENCE_MS / 1_000} s`));
  let timer = setTimeout(tooSilent, SILENCE_MS);
  return {
    signal: controller.signal,
    async *bytesOf(response: Response): AsyncGenerator<Uint8Array, void, undefined> {
      try {
        for await (const chunk of response.body ?? []) {
          clearTimeout(timer);
          timer = setTimeout(tooSilent, SILENCE_MS);
          yield chunk as Uint8Array;
        }
      } catch (error) {
        throw new ConnectionError('the stream was cut', { cause: error });
      }
    },
    close(): void {
      clearTimeout(timer);
      outer?.removeEventListener('abort', abort);
      controller.abort();
    },
  };
}
