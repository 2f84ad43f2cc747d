import type { Clock } from '../lib/clock.ts';
import { type Due, DueQueue } from '../lib/due-queue.ts';
import {
  type AttemptReport,
  type AttemptResults,
  ResultWriter,
  resultsOf,
  type SentPart,
  send,
} from './attempt.ts';
import type { Channel } from './channels/channel.ts';
import type { Deliveries } from './deliveries-store.ts';
import type { DueDelivery } from './delivery.ts';

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** At least this time is between two times at which failed deliveries are made due. */
const RECOVERY_MS = 60_000;
const MAX_RECOVERY_MS = 86_400_000;

/**
 * Concurrency and pauses of one destination. The limit starts at 1, doubles with each delivery, and
 * returns to 1 on a failure, but not on a refusal (such as 400). 429, 502, 503 and 504 pause for
 * the Retry-After, or else 1, 2, 4 … 60 s. A success makes failed deliveries due, at most once a
 * minute. While some fail again, the interval grows fourfold, so that they keep their attempts.
 */
class DestinationQueue implements Due {
  readonly destination: string;
  readonly isCallback: boolean;
  /** Next attempt in epoch milliseconds. The schedule maintains `heapIndex`. */
  dueAt = 0;
  heapIndex = 0;
  readonly inFlight = new Set<number>();
  readonly #maxAttempts: number;
  #attempts = 0;
  #limit = 1;
  #consecutivePauses = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #address: string | undefined;
  /** Whether failed deliveries may wait, at first those of an earlier run. */
  #hasFailures = true;
  #hasRecovered = false;
  #recoveredAt = Number.NEGATIVE_INFINITY;
  #recoveryMs = RECOVERY_MS;

  constructor(destination: string, concurrency: number) {
    this.destination = destination;
    this.isCallback = destination.startsWith('callback:');
    this.#maxAttempts = concurrency;
  }

  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /** How many more attempts may start. Negative after a failure during others. */
  get available(): number {
    return this.#limit - this.#attempts;
  }

  /** A new address starts without the failures of the previous receiver. */
  useAddress(address: string): void {
    if (this.#address !== undefined && this.#address !== address) {
      this.#limit = 1;
      this.#consecutivePauses = 0;
      this.#pausedUntil = Number.NEGATIVE_INFINITY;
    }
    this.#address = address;
  }

  isAt(address: string): boolean {
    return this.#address === address;
  }

  started(deliveryIds: readonly number[]): void {
    this.#attempts += 1;
    for (const id of deliveryIds) this.inFlight.add(id);
  }

  ended(): void {
    this.#attempts -= 1;
  }

  succeeded(): void {
    this.#hasRecovered = true;
    this.#limit = Math.min(this.#limit * 2, this.#maxAttempts);
    this.#consecutivePauses = 0;
  }

  /** The receiver refused one delivery, which says nothing about the others. */
  refused(): void {
    this.#hasFailures = true;
  }

  /** `slowDown`: the receiver requested a lower rate, with an optional Retry-After. */
  failed(now: number, slowDown: { retryAfterMs: number | null } | undefined): void {
    this.#hasFailures = true;
    this.#hasRecovered = false;
    this.#limit = 1;
    if (!slowDown) return;
    const pauseMs =
      slowDown.retryAfterMs ??
      Math.min(FIRST_PAUSE_MS * 2 ** this.#consecutivePauses, MAX_PAUSE_MS);
    this.#consecutivePauses += 1;
    this.#pausedUntil = Math.max(this.#pausedUntil, now + pauseMs);
  }

  /** When the failed deliveries are to be made due; infinite if there is no reason to. */
  get recoversAt(): number {
    const isDue = this.#hasRecovered && this.#hasFailures;
    return isDue ? this.#recoveredAt + this.#recoveryMs : Number.POSITIVE_INFINITY;
  }

  /** Failed deliveries were made due. `hasMore`: others are to follow. */
  recovered(now: number, hasMore: boolean): void {
    const isRepeated = now - this.#recoveredAt <= 2 * this.#recoveryMs;
    this.#recoveryMs =
      isRepeated && !hasMore ? Math.min(4 * this.#recoveryMs, MAX_RECOVERY_MS) : RECOVERY_MS;
    this.#recoveredAt = now;
    this.#hasFailures = hasMore;
    this.#hasRecovered = hasMore;
  }
}

export type DeliveryStore = Pick<
  Deliveries,
  | 'destinations'
  | 'due'
  | 'makeFailedDue'
  | 'nextDueAt'
  | 'recordResults'
  | 'endUnconfigured'
  | 'correctTimes'
  | 'onWaiting'
>;

type DispatcherDeps = {
  store: DeliveryStore;
  channelOf: (destination: string) => Channel | undefined;
  clock: Clock;
  random: () => number;
  concurrency: number;
  onAttempted: (report: AttemptReport) => void;
  /** The ledger could not be read or written; the dispatcher retries. */
  onFailed: (error: unknown) => void;
};

const RETRY_MS = 1_000;
/** A client may register thousands of callback URLs that never respond. */
const MAX_CALLBACKS = 1_024;

/**
 * Sends due deliveries: ledger → channel → ledger. A delivery stays `waiting` until its result is
 * committed, so a crash sends it again with the same event id. A queue is ready, scheduled (until
 * `dueAt`) or idle (nothing due, or no concurrency left). Ready queues are served round robin, each
 * within its limit, so a silent receiver delays no others.
 */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #queues = new Map<string, DestinationQueue>();
  readonly #scheduled = new DueQueue<DestinationQueue>();
  readonly #ready = new Set<DestinationQueue>();
  readonly #writer: ResultWriter;
  #callbacks = 0;
  #cancelPass: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  readonly #attempts = new Set<Promise<void>>();
  readonly #abort = new AbortController();
  #isRunning = false;
  #stopping: Promise<void> | undefined;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.#writer = new ResultWriter({
      commit: (results) => deps.store.recordResults(results),
      clock: deps.clock,
      onCommitted: (committed) => this.#onCommitted(committed),
      onFailed: deps.onFailed,
    });
  }

  start(): void {
    const { store, clock } = this.#deps;
    store.correctTimes(clock.now());
    this.#isRunning = true;
    this.#unsubscribe = store.onWaiting((destinations) => {
      for (const destination of destinations) this.#makeReady(this.#queueOf(destination));
    });
    for (const destination of store.destinations()) this.#makeReady(this.#queueOf(destination));
  }

  async attemptsEnded(): Promise<void> {
    await Promise.all(this.#attempts);
  }

  /** Waits up to `limitMs` for attempts and commits their results; aborted ones are sent again. */
  stop(limitMs: number): Promise<void> {
    this.#stopping ??= this.#stop(limitMs);
    return this.#stopping;
  }

  async #stop(limitMs: number): Promise<void> {
    this.#isRunning = false;
    this.#unsubscribe?.();
    this.#cancelPass?.();
    this.#cancelTimer?.();
    if (limitMs <= 0) this.#abort.abort();
    const cancelLimit = this.#deps.clock.after(limitMs, () => this.#abort.abort());
    await Promise.all(this.#attempts);
    cancelLimit();
    this.#writer.close();
  }

  #queueOf(destination: string): DestinationQueue {
    let queue = this.#queues.get(destination);
    if (!queue) {
      queue = new DestinationQueue(destination, this.#deps.concurrency);
      this.#queues.set(destination, queue);
    }
    return queue;
  }

  #makeReady(queue: DestinationQueue): void {
    if (this.#scheduled.has(queue)) this.#scheduled.remove(queue);
    this.#ready.add(queue);
    this.#wake();
  }

  #schedule(queue: DestinationQueue, dueAt: number): void {
    if (this.#scheduled.has(queue)) this.#scheduled.remove(queue);
    this.#ready.delete(queue);
    queue.dueAt = Math.max(dueAt, queue.pausedUntil);
    this.#scheduled.add(queue);
  }

  #setTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const { earliest } = this.#scheduled;
    if (!earliest || !this.#isRunning) return;
    const { clock } = this.#deps;
    this.#cancelTimer = clock.after(Math.max(1, earliest.dueAt - clock.now()), () =>
      this.#onTimer(),
    );
  }

  #onTimer(): void {
    const now = this.#deps.clock.now();
    for (
      let { earliest } = this.#scheduled;
      earliest && earliest.dueAt <= now;
      { earliest } = this.#scheduled
    )
      this.#makeReady(earliest);
    this.#setTimer();
  }

  #wake(): void {
    if (this.#isRunning) this.#cancelPass ??= this.#deps.clock.after(0, () => this.#pass());
  }

  #pass(): void {
    this.#cancelPass = undefined;
    if (!this.#isRunning || this.#writer.isBlocked) return;
    for (const queue of this.#ready) {
      if (queue.isCallback && this.#callbacks >= MAX_CALLBACKS) continue;
      this.#ready.delete(queue);
      try {
        this.#serve(queue);
      } catch (error) {
        this.#deps.onFailed(error);
        this.#schedule(queue, this.#deps.clock.now() + RETRY_MS);
      }
    }
    this.#setTimer();
  }

  /** Starts as many attempts as the queue allows, then leaves the turn to other queues. */
  #serve(queue: DestinationQueue): void {
    const { destination, inFlight, available } = queue;
    if (available <= 0) return;
    const { store, clock, channelOf } = this.#deps;
    const now = clock.now();
    const channel = channelOf(destination);
    if (!channel) {
      store.endUnconfigured(destination, now);
      return;
    }
    queue.useAddress(channel.address);
    if (queue.pausedUntil > now) {
      this.#schedule(queue, queue.pausedUntil);
      return;
    }
    if (queue.recoversAt <= now) queue.recovered(now, store.makeFailedDue(destination, now));
    const { maxBatch } = channel;
    const due = store.due(destination, { now, limit: available * maxBatch, except: inFlight });
    for (const deliveries of toMessages(due, maxBatch).slice(0, available))
      this.#attempts.add(this.#attempt(queue, channel, deliveries));
    if (due.length > 0) {
      this.#ready.add(queue);
      return;
    }
    const nextAt = store.nextDueAt(destination, inFlight);
    // One that is due and was not returned waits for an earlier message of its alert in flight.
    const dueAt = nextAt !== null && nextAt <= now ? now + RETRY_MS : nextAt;
    if (dueAt !== null) this.#schedule(queue, Math.min(dueAt, queue.recoversAt));
    // There may be callbacks to any number of origins.
    else if (queue.isCallback && inFlight.size === 0) this.#queues.delete(destination);
  }

  #attempt(
    queue: DestinationQueue,
    channel: Channel,
    deliveries: readonly DueDelivery[],
  ): Promise<void> {
    const { clock, onFailed } = this.#deps;
    queue.started(deliveries.map(({ id }) => id));
    if (queue.isCallback) this.#callbacks += 1;
    const attempt = send(channel, deliveries, {
      clock,
      stop: this.#abort.signal,
      onFailed,
    })
      .then((attempted) => this.#onSent(queue, channel, attempted))
      .catch((error) => {
        onFailed(error);
        for (const { id } of deliveries) queue.inFlight.delete(id);
        this.#schedule(queue, clock.now() + RETRY_MS);
        this.#setTimer();
      })
      .finally(() => {
        queue.ended();
        if (queue.isCallback) this.#callbacks -= 1;
        this.#attempts.delete(attempt);
        this.#wake();
      });
    return attempt;
  }

  #onSent(
    queue: DestinationQueue,
    channel: Channel,
    { sent, ...times }: { sent: SentPart[]; at: number; durationMs: number },
  ): void {
    const now = this.#deps.clock.now();
    // An attempt that dawatch aborted is not recorded: it is made again after the next start.
    const isAborted = this.#abort.signal.aborted;
    const parts = isAborted ? sent.filter(({ result }) => result.kind === 'delivered') : sent;
    let hasFailed = false;
    for (const { result } of parts) {
      if (!queue.isAt(channel.address)) break;
      if (result.kind === 'delivered') queue.succeeded();
      else if (result.refused) queue.refused();
      else if (!result.undeliverable) {
        hasFailed = true;
        queue.failed(now, result.slowDown);
      }
    }
    const random = this.#deps.random();
    const { destination } = queue;
    for (const part of parts)
      this.#writer.add(resultsOf({ destination, ...part, channel, ...times, now, random }));
    // After a failure, the commit of its result makes the queue ready again.
    if (!isAborted && !hasFailed) this.#makeReady(queue);
  }

  /** Deliveries count as in flight until their results are committed. */
  #onCommitted(committed: readonly AttemptResults[]): void {
    for (const { results, report } of committed) {
      const queue = this.#queueOf(report.destination);
      for (const { deliveryId } of results) queue.inFlight.delete(deliveryId);
      if (this.#isRunning) this.#makeReady(queue);
    }
    this.#wake();
    for (const { report } of committed) this.#deps.onAttempted(report);
  }
}

/** Messages contain events of one type, at most `maxBatch`, in their order. */
function toMessages(due: readonly DueDelivery[], maxBatch: number): DueDelivery[][] {
  const open = new Map<string, DueDelivery[]>();
  const messages: DueDelivery[][] = [];
  for (const delivery of due) {
    let message = open.get(delivery.event.type);
    if (!message || message.length === maxBatch) {
      message = [];
      open.set(delivery.event.type, message);
      messages.push(message);
    }
    message.push(delivery);
  }
  return messages;
}
