import { type Dispatcher, errors } from 'undici';
import type { UpstreamResponse } from '../domain/classify.ts';

/** A timer that is late by more than this shows that this process was blocked, not the upstream. */
const STALL_MS = 500;

type CallOptions = {
  /** For the whole call, from waiting for a connection to the last byte of the body. */
  timeoutMs: number;
  /** A larger response is aborted. */
  maxBytes: number;
  now: () => number;
  /** Called once: with the response, an error or the timeout, whichever comes first. */
  onEnd: (response: UpstreamResponse) => void;
};

/**
 * One request in flight. It collects the body itself: a stream would cost 17 % of the CPU of a poll ("polls per second, local
 * engine" in docs/performance.md).
 */
export class UpstreamCall implements Dispatcher.DispatchHandler {
  readonly #options: CallOptions;
  readonly #startedAt = performance.now();
  readonly #chunks: Buffer[] = [];
  #timer: NodeJS.Timeout;
  #controller: Dispatcher.DispatchController | undefined;
  #httpStatus = 0;
  #headers: Record<string, string | string[] | undefined> = {};
  #bytes = 0;
  #isOver = false;

  constructor(options: CallOptions) {
    this.#options = options;
    this.#timer = setTimeout(() => this.#onTimeout(), options.timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The timeout passed while the call waited for a connection.
    if (this.#isOver) controller.abort(new errors.RequestAbortedError());
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    httpStatus: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#httpStatus = httpStatus;
    this.#headers = headers;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    const { maxBytes } = this.#options;
    this.#bytes += chunk.length;
    if (this.#bytes > maxBytes) this.#abort('too_large', `a body of more than ${maxBytes} bytes`);
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#end({
      kind: 'response',
      httpStatus: this.#httpStatus,
      retryAfter: first(this.#headers['retry-after']),
      date: first(this.#headers.date) ?? new Date(this.#options.now()).toUTCString(),
      body: textOf(this.#chunks),
    });
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#end({ kind: 'failure', reason: 'network', detail: describe(error) });
  }

  /** If this process was blocked, a received response may be unread: the call gets the same time once more. */
  #onTimeout(): void {
    const { timeoutMs } = this.#options;
    const abort = () => this.#abort('timeout', `no complete response within ${timeoutMs} ms`);
    if (performance.now() - this.#startedAt < timeoutMs + STALL_MS) abort();
    else this.#timer = setTimeout(abort, timeoutMs);
  }

  /** Aborts the connection too, because the response may never end. */
  #abort(reason: 'timeout' | 'too_large', detail: string): void {
    this.#end({ kind: 'failure', reason, detail });
    this.#controller?.abort(new errors.RequestAbortedError());
  }

  #end(response: UpstreamResponse): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#options.onEnd(response);
  }
}

function textOf(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks).toString('utf8');
}

function first(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** Describes a network error, without anything that was sent. */
function describe(error: unknown): string {
  if (error instanceof errors.ClientDestroyedError) return 'the client was closed';
  if (!(error instanceof Error)) return 'unknown failure';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return error.message && !error.message.includes(code) ? `${code}: ${error.message}` : error.message || code;
}
