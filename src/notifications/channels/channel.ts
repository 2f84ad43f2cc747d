import type { EventRecord } from '../event-body.ts';

/** An event to be sent to one destination. */
export type Outgoing = {
  event: EventRecord;
  /** The serialized event, identical in every attempt. */
  json: string;
  /** For callbacks: the `callback_url` of the submission. */
  callbackUrl: string | null;
  /** Trace context of the span of this attempt; absent if the attempt is not traced. */
  traceparent?: string | undefined;
};

/**
 * The result of one attempt. Failures are returned and not thrown, because a failing receiver is
 * expected.
 */
export type SendResult =
  | { kind: 'delivered'; httpStatus: number | null; response: string | null }
  | {
      kind: 'failed';
      httpStatus: number | null;
      /** One sentence without secrets and without the URL, which may contain one. */
      error: string;
      /** The beginning of the response body. */
      response: string | null;
      /**
       * The receiver requests a lower rate: the destination is paused. `retryAfterMs` null: for an
       * unspecified time.
       */
      slowDown?: { retryAfterMs: number | null };
      /** The receiver is permanently gone (410). */
      gone?: boolean;
      /**
       * The receiver refused this delivery (such as 400): it is retried, and other deliveries are
       * not affected.
       */
      refused?: boolean;
      /**
       * The channel cannot serialize the event: this is not the receiver's failure, and a retry
       * would not help.
       */
      undeliverable?: boolean;
    };

type FailedResult = Extract<SendResult, { kind: 'failed' }>;

export function failed(error: string, slowDown?: { retryAfterMs: number | null }): FailedResult {
  return { kind: 'failed', httpStatus: null, error, response: null, ...(slowDown && { slowDown }) };
}

export type Channel = {
  /** Maximum events per message. Above 1, due events of the same type are sent as one message. */
  readonly maxBatch: number;
  /** Returns the delay after the `attempts`-th attempt; null makes the delivery a dead letter. */
  retryDelayMs(attempts: number): number | null;
  /** Must end soon after `signal` aborts. Rejects only if the batch cannot be serialized. */
  send(batch: readonly Outgoing[], signal: AbortSignal): Promise<SendResult>;
  /** Idempotent. */
  close(): Promise<void>;
};
