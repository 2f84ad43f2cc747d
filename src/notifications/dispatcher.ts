import type { Clock } from '../lib/clock.ts';
import { DueQueue } from '../lib/due-queue.ts';
import { type Durability, type SentPart, send, type TraceDelivery, toMessages } from './attempt.ts';
import { type Channel, failed } from './channels/channel.ts';
import type { Deliveries } from './deliveries-store.ts';
import type { DamagedDelivery, DueDelivery } from './delivery.ts';
import { type DestinationPriority, DestinationQueue, PRIORITIES } from './destination-queue.ts';
import {
  type AttemptReport,
  type AttemptResult,
  ResultWriter,
  resultsOf,
} from './result-writer.ts';

/** An attempt older than this no longer occupies a slot: most receivers respond sooner. */
const SLOT_MS = 1_000;
const SLOTS_PER_PRIORITY = 256;
/**
 * Callback attempts in flight, of any age: a client may register thousands of callback URLs that
 * never respond.
 */
const MAX_CALLBACKS = 2_048;

/**
 * Limits the attempts in flight. Each attempt occupies a slot of its priority for one second at
 * most, so receivers that do not respond delay others by no more than that. Longer attempts are
 * limited per destination, and for callbacks in total.
 */
export class AttemptSlots {
  readonly #clock: Clock;
  readonly #used: Record<DestinationPriority, number> = {
    proven: 0,
    unproven: 0,
    proven_callback: 0,
    callback: 0,
  };
  #callbacks = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  available(priority: DestinationPriority): number {
    const slots = SLOTS_PER_PRIORITY - this.#used[priority];
    return isCallback(priority) ? Math.min(slots, MAX_CALLBACKS - this.#callbacks) : slots;
  }

  /**
   * Call the returned function when the attempt ends. `onFree` is called if the slot becomes free
   * before that.
   */
  acquire(priority: DestinationPriority, onFree: () => void): () => void {
    this.#used[priority] += 1;
    if (isCallback(priority)) this.#callbacks += 1;
    let holdsSlot = true;
    const free = () => {
      if (holdsSlot) this.#used[priority] -= 1;
      holdsSlot = false;
    };
    const cancel = this.#clock.after(SLOT_MS, () => {
      free();
      onFree();
    });
    return () => {
      cancel();
      free();
      if (isCallback(priority)) this.#callbacks -= 1;
    };
  }
}

function isCallback(priority: DestinationPriority): boolean {
  return priority === 'callback' || priority === 'proven_callback';
}

export type DeliveryStore = Durability &
  Pick<
    Deliveries,
    | 'destinations'
    | 'due'
    | 'nextDueAt'
    | 'recordResults'
    | 'expireUnconfigured'
    | 'correctTimes'
    | 'onWaiting'
  >;

type DispatcherDeps = {
  store: DeliveryStore;
  /** Returns the channel of a destination as configured now; undefined if there is none. */
  channelOf: (destination: string) => Channel | undefined;
  clock: Clock;
  random: () => number;
  /** Maximum attempts in flight per destination. */
  concurrency: number;
  onAttempted: (report: AttemptReport) => void;
  /** The ledger could not be read or written; the dispatcher retries. */
  onFailed: (error: unknown) => void;
  /** Undefined: tracing is off. */
  trace?: TraceDelivery | undefined;
};

const RETRY_MS = 1_000;
/**
 * After this many destinations that could not be served in one pass, the ledger is taken as
 * unreadable.
 */
const MAX_FAULTS = 3;
/**
 * Deliveries to a channel that is not configured wait as long as all attempts take: it may be
 * missing by mistake.
 */
const UNCONFIGURED_MS = 4 * 86_400_000;
const UNCONFIGURED_CHECK_MS = 3_600_000;
/**
 * Bounds for stored times after the system clock was ahead: the longest gathering and the longest
 * retry delay.
 */
const MAX_WAIT_MS = { first: 3_600_000, retry: 30 * 3_600_000 };
/** Above this, the state of idle destinations is dropped, also that of proven ones. */
const MAX_DESTINATIONS = 10_000;

/**
 * Sends due deliveries: ledger → channel → ledger.
 *
 * A delivery stays `waiting` in the ledger until its result is committed, so after a crash it is
 * sent again with the same event id. Each destination has a queue, which is in one of three states:
 * ready (deliveries may be due), scheduled (until its `dueAt`), or idle (nothing is due, or its
 * concurrency is exhausted until an attempt ends). Ready queues are served round robin, in the
 * order of PRIORITIES.
 */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #queues = new Map<string, DestinationQueue>();
  readonly #scheduled = new DueQueue<DestinationQueue>();
  readonly #ready = PRIORITIES.map((priority) => ({
    priority,
    queues: new Set<DestinationQueue>(),
  }));
  readonly #slots: AttemptSlots;
  readonly #writer: ResultWriter;
  #cancelPass: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  readonly #attempts = new Set<Promise<void>>();
  readonly #abort = new AbortController();
  #isRunning = false;
  #stopping: Promise<void> | undefined;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.#slots = new AttemptSlots(deps.clock);
    this.#writer = new ResultWriter({
      ...deps,
      onCommitted: (committed) => this.#onCommitted(committed),
    });
  }

  /** Resumes everything that waits in the ledger. */
  start(): void {
    const { store, clock } = this.#deps;
    store.correctTimes(clock.now(), MAX_WAIT_MS);
    this.#isRunning = true;
    this.#unsubscribe = store.onWaiting((destinations) => {
      for (const destination of destinations) this.#makeReady(this.#queueOf(destination));
    });
    for (const { destination, dueAt } of store.destinations())
      this.#schedule(this.#queueOf(destination), dueAt);
    this.#setTimer();
  }

  /** Looks for deliveries to these destinations, whose channels have changed. */
  refresh(destinations: readonly string[]): void {
    for (const destination of destinations) this.#makeReady(this.#queueOf(destination));
  }

  /** Resolves when the attempts that are in flight now have ended. */
  async attemptsEnded(): Promise<void> {
    await Promise.all(this.#attempts);
  }

  /**
   * Stops sending, waits up to `limitMs` for attempts in flight and commits their results; aborted
   * ones are sent again.
   */
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
    const known = this.#queues.get(destination);
    if (known) return known;
    const queue = new DestinationQueue(destination, this.#deps.concurrency);
    this.#queues.set(destination, queue);
    return queue;
  }

  /** Serves the queue in the next pass, or when its pause is over. */
  #makeReady(queue: DestinationQueue): void {
    if (queue.pausedUntil > this.#deps.clock.now()) {
      this.#schedule(queue, queue.pausedUntil);
      this.#setTimer();
      return;
    }
    if (this.#scheduled.has(queue)) this.#scheduled.remove(queue);
    this.#addReady(queue);
    this.#wake();
  }

  #addReady(queue: DestinationQueue): void {
    for (const { priority, queues } of this.#ready)
      if (priority === queue.priority) queues.add(queue);
      else queues.delete(queue);
  }

  #schedule(queue: DestinationQueue, dueAt: number): void {
    if (this.#scheduled.has(queue)) this.#scheduled.remove(queue);
    for (const { queues } of this.#ready) queues.delete(queue);
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
    let faults = 0;
    for (const queue of this.#takeReady())
      try {
        this.#serve(queue);
      } catch (error) {
        this.#deps.onFailed(error);
        this.#schedule(queue, this.#deps.clock.now() + RETRY_MS);
        if (++faults < MAX_FAULTS) continue;
        this.#cancelPass = this.#deps.clock.after(RETRY_MS, () => this.#pass());
        break;
      }
    this.#setTimer();
  }

  /**
   * Removes and yields ready queues for which a slot is available, including those that become
   * ready meanwhile.
   */
  *#takeReady(): Generator<DestinationQueue> {
    for (const { priority, queues } of this.#ready)
      for (const queue of queues) {
        if (this.#slots.available(priority) <= 0) break;
        queues.delete(queue);
        yield queue;
      }
  }

  /**
   * Starts as many attempts as the queue and the slots allow, then leaves the turn to other queues.
   */
  #serve(queue: DestinationQueue): void {
    const available = Math.min(queue.available, this.#slots.available(queue.priority));
    if (available <= 0) return;
    const { destination, inFlight } = queue;
    const { store, clock, channelOf } = this.#deps;
    const now = clock.now();
    if (queue.pausedUntil > now) {
      this.#schedule(queue, queue.pausedUntil);
      return;
    }
    const channel = channelOf(destination);
    if (!channel) {
      store.expireUnconfigured(destination, now - UNCONFIGURED_MS, now);
      this.#rest(
        queue,
        store.nextDueAt(destination, inFlight) === null ? null : now + UNCONFIGURED_CHECK_MS,
      );
      return;
    }
    const { maxBatch } = channel;
    const due = store.due(destination, { now, limit: available * maxBatch, except: inFlight });
    if (due.length === 0) {
      this.#rest(queue, store.nextDueAt(destination, inFlight));
      return;
    }
    const readable = due.filter(
      (delivery): delivery is DueDelivery => !('damage' in delivery.event),
    );
    for (const deliveries of toMessages(readable, maxBatch).slice(0, available))
      this.#attempts.add(this.#attempt(queue, channel, deliveries));
    for (const delivery of due)
      if ('damage' in delivery.event) this.#reject(queue, channel, delivery as DamagedDelivery);
    this.#addReady(queue);
  }

  /**
   * Nothing is due: schedules the queue, or drops its state if nothing waits and nothing was
   * learned.
   */
  #rest(queue: DestinationQueue, dueAt: number | null): void {
    if (dueAt !== null) this.#schedule(queue, dueAt);
    else if (queue.inFlight.size === 0 && (!queue.isProven || this.#queues.size > MAX_DESTINATIONS))
      this.#queues.delete(queue.destination);
  }

  #attempt(
    queue: DestinationQueue,
    channel: Channel,
    deliveries: readonly DueDelivery[],
  ): Promise<void> {
    const release = this.#slots.acquire(queue.priority, () => this.#wake());
    queue.started(deliveries.map(({ id }) => id));
    const attempt = send(channel, deliveries, {
      ...this.#deps,
      destination: queue.destination,
      stop: this.#abort.signal,
    })
      .then(({ sent, at }) => this.#onSent(queue, { channel, sent, at }))
      .catch((error) => this.#deps.onFailed(error))
      .finally(() => {
        release();
        this.#attempts.delete(attempt);
        this.#wake();
      });
    return attempt;
  }

  #onSent(
    queue: DestinationQueue,
    { channel, sent, at }: { channel: Channel; sent: SentPart[]; at: number },
  ): void {
    const now = this.#deps.clock.now();
    // An attempt that dawatch aborted is not recorded: it is made again after the next start.
    const isAborted = this.#abort.signal.aborted;
    const parts = isAborted ? sent.filter(({ result }) => result.kind === 'delivered') : sent;
    const results = parts.map(({ result }) => result);
    const failure = results.find(
      (result) => result.kind === 'failed' && !result.undeliverable && !result.refused,
    );
    if (results.some(({ kind }) => kind === 'delivered')) {
      queue.succeeded();
      this.#makeReady(queue);
    } else if (failure?.kind === 'failed') queue.failed(now, failure.slowDown);
    else {
      queue.inconclusive();
      if (!isAborted) this.#makeReady(queue);
    }
    const random = this.#deps.random();
    for (const part of parts) this.#record(queue, { ...part, channel, at, now, random });
  }

  /** Makes a damaged delivery a dead letter without an attempt. */
  #reject(queue: DestinationQueue, channel: Channel, delivery: DamagedDelivery): void {
    queue.inFlight.add(delivery.id);
    const now = this.#deps.clock.now();
    const result = { ...failed(delivery.event.damage), undeliverable: true };
    this.#record(queue, { channel, deliveries: [delivery], result, at: now, now, random: 0 });
  }

  #record(
    queue: DestinationQueue,
    attempt: Omit<Parameters<typeof resultsOf>[0], 'destination'>,
  ): void {
    this.#writer.add({ queue, ...resultsOf({ destination: queue.destination, ...attempt }) });
  }

  /** Deliveries count as in flight until their results are committed. */
  #onCommitted(committed: readonly AttemptResult[]): void {
    for (const { queue, results } of committed) {
      for (const { deliveryId } of results) queue.inFlight.delete(deliveryId);
      if (this.#isRunning) this.#makeReady(queue);
    }
    this.#wake();
    for (const { report } of committed) this.#deps.onAttempted(report);
  }
}
