import { type Dispatcher, errors } from 'undici';
import type { UpstreamResponse } from '../submissions/classify.ts';

/** A timer that is late by more than this shows that this process was blocked, not the upstream. */
const STALL_MS = 500;

type CallOptions = {
  /** For the whole call, from waiting for a connection to the last byte of the body. */
  timeoutMs: number;
  /** A larger response is aborted. */
  maxBytes: number;
  now: () => number;
  /**
   * Called once: with the response, an error or the timeout, whichever comes first. A response has
   * its bytes and headers.
   */
  onEnd: (response: UpstreamResponse, bytes?: Buffer, headers?: ResponseHeaders) => void;
};

export type ResponseHeaders = Record<string, string | string[] | undefined>;

/**
 * One request in flight. It collects the body itself: a stream would cost 17 % of the CPU of a poll
 * (row polls-local).
 */
export function upstreamCall({
  timeoutMs,
  maxBytes,
  now,
  onEnd,
}: CallOptions): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = [];
  let controller: Dispatcher.DispatchController | undefined;
  let httpStatus = 0;
  let headers: ResponseHeaders = {};
  let bytes = 0;
  let isOver = false;
  let timer = startTimer();

  /**
   * If this process was blocked, a received response may be unread: the call gets the same time
   * once more.
   */
  function startTimer(): NodeJS.Timeout {
    const startedAt = performance.now();
    return setTimeout(() => {
      if (performance.now() - startedAt >= timeoutMs + STALL_MS) timer = startTimer();
      else abort('timeout', `no complete response within ${timeoutMs} ms`);
    }, timeoutMs);
  }

  /** Aborts the connection too, because the response may never end. */
  function abort(reason: 'timeout' | 'too_large', detail: string): void {
    end({ kind: 'failure', reason, detail });
    controller?.abort(new errors.RequestAbortedError());
  }

  function end(response: UpstreamResponse, bytes?: Buffer): void {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    onEnd(response, bytes, headers);
  }

  return {
    onRequestStart(started) {
      controller = started;
      // The timeout passed while the call waited for a connection.
      if (isOver) controller.abort(new errors.RequestAbortedError());
    },
    onResponseStart(_controller, status, received) {
      httpStatus = status;
      headers = received;
    },
    onResponseData(_controller, chunk) {
      bytes += chunk.length;
      if (bytes > maxBytes) abort('too_large', `a body of more than ${maxBytes} bytes`);
      else chunks.push(chunk);
    },
    onResponseEnd() {
      const date = first(headers.date) ?? new Date(now()).toUTCString();
      const bytes = Buffer.concat(chunks);
      const retryAfter = first(headers['retry-after']);
      end({ kind: 'response', httpStatus, retryAfter, date, body: bytes.toString('utf8') }, bytes);
    },
    onResponseError(_controller, error) {
      end({ kind: 'failure', reason: 'network', detail: describe(error) });
    },
  };
}

function first(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** Describes a network error, without anything that was sent. */
function describe(error: unknown): string {
  if (error instanceof errors.ClientDestroyedError) return 'the client was closed';
  if (!(error instanceof Error)) return 'unknown failure';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return error.message && !error.message.includes(code)
    ? `${code}: ${error.message}`
    : error.message || code;
}
