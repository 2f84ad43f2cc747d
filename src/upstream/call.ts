import type { Dispatcher } from 'undici';
import errors from 'undici/lib/core/errors.js';
import type { UpstreamResponse } from '../domain/classify.ts';

/** A timer that is so late shows that this process stood still, not the upstream. */
const STALL_MS = 500;

type CallOptions = {
  /** For all of it, from waiting for a connection to the last byte of the body. */
  timeoutMs: number;
  /** A larger answer is cut off unread. */
  maxBytes: number;
  now: () => number;
  /** Told once, what comes first: the whole answer, what went wrong, or the end of the time. */
  onEnd: (answer: UpstreamResponse) => void;
};

/** One request under way. It reads its answer without a stream in between, which would cost as much as all the rest. */
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
    this.#timer = setTimeout(() => this.#late(), options.timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // Its time was over while it waited for a connection.
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
    if (this.#bytes > maxBytes) this.#giveUp('too_large', `a body of more than ${maxBytes} bytes`);
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

  /** Who stood still for that long has not looked yet at what came meanwhile: the answer gets the same time once more. */
  #late(): void {
    const { timeoutMs } = this.#options;
    const giveUp = () => this.#giveUp('timeout', `no whole answer within ${timeoutMs} ms`);
    if (performance.now() - this.#startedAt < timeoutMs + STALL_MS) giveUp();
    else this.#timer = setTimeout(giveUp, timeoutMs);
  }

  /** With its connection, because the rest of the answer may never end. */
  #giveUp(reason: 'timeout' | 'too_large', detail: string): void {
    this.#end({ kind: 'failure', reason, detail });
    this.#controller?.abort(new errors.RequestAbortedError());
  }

  #end(answer: UpstreamResponse): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#options.onEnd(answer);
  }
}

/** Most come in one, which need not be copied first. */
function textOf(chunks: readonly Buffer[]): string {
  const [only] = chunks;
  return (only && chunks.length === 1 ? only : Buffer.concat(chunks)).toString('utf8');
}

function first(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** What went wrong on the way, without anything that was sent. */
function describe(error: unknown): string {
  if (error instanceof errors.ClientDestroyedError) return 'the client was closed';
  if (!(error instanceof Error)) return 'unknown failure';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return error.message && !error.message.includes(code) ? `${code}: ${error.message}` : error.message || code;
}
