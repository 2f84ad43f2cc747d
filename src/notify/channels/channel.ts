import type { EventRecord } from '../../domain/notifications/event-body.ts';

/** One event on its way to one destination. */
export type Outgoing = {
  event: EventRecord;
  /** The event's body: the same at every attempt. */
  json: string;
  /** Of a callback: where the submission wants it. */
  callbackUrl: string | null;
};

/** What came of one attempt. It is returned, not thrown: that a receiver fails is expected. */
export type SendResult =
  | { kind: 'delivered'; httpStatus: number | null; response: string | null }
  | {
      kind: 'failed';
      httpStatus: number | null;
      /** One sentence, without secrets and without the address, which may hold one. */
      error: string;
      /** The beginning of what was answered. */
      response: string | null;
      /** The destination asks for less: nothing else is sent to it for a while. `retryAfterMs` null: it didn't say for how long. */
      slowDown?: { retryAfterMs: number | null };
      /** The receiver is gone for good (410). */
      gone?: boolean;
      /** It refused this one delivery (400, say): another attempt may work, and other deliveries go on as before. */
      refused?: boolean;
      /** The event can not be written as this channel needs it: says nothing about the receiver, and no attempt mends it. */
      undeliverable?: boolean;
    };

/** A way to reach somebody. */
export type Channel = {
  /** How many events it takes at once. With more than one, those of the same type that wait are sent as one message. */
  readonly maxBatch: number;
  /** When the attempt after the `attempts`-th is made, counted from that; null: it is given up. */
  retryDelayMs(attempts: number): number | null;
  /** Must end soon after `signal` aborts. Never rejects. */
  send(batch: readonly Outgoing[], signal: AbortSignal): Promise<SendResult>;
  /** Idempotent. */
  close(): Promise<void>;
};
