import type { Clock } from '../../domain/clock.ts';
import type { DeliveryResult, DueDelivery, UnreadableDelivery } from '../../domain/notifications/delivery.ts';
import { toUnreadableRow } from '../../domain/notifications/event-body.ts';
import type { ReportUnreadable } from '../../domain/stored.ts';
import { DueQueue } from '../../pacing/due-queue.ts';
import { LedgerUnavailableError } from '../../watch/ports.ts';
import type { Channel } from '../channels/channel.ts';
import type { DeliveryStore } from '../ports.ts';
import { type SentPart, send, toMessages } from './attempt.ts';
import { AttemptSlots } from './attempt-slots.ts';
import { DestinationQueue } from './destination-queue.ts';
import { ReadyQueue } from './ready-queue.ts';
import { type AttemptReport, resultsOf } from './result.ts';

export type DispatcherDeps = {
  store: DeliveryStore;
  /** How a destination is reached now; undefined: not at all any more. */
  channelOf: (destination: string) => Channel | undefined;
  clock: Clock;
  random: () => number;
  disableAfterMs: number;
  /** Attempts that may be under way to one destination. */
  concurrency: number;
  onAttempted: (attempted: AttemptReport) => void;
  /** The ledger did not take a write, or could not be read; it is tried again. */
  onFailed: (error: unknown) => void;
  onUnreadable: ReportUnreadable;
};

type Settled = { lane: DestinationQueue; settlements: DeliveryResult[]; attempted: AttemptReport };

const RETRY_MS = 1_000;
/** So long results wait for others, to be committed with them: a commit costs as much as many results. */
const GATHER_MS = 10;
/** With so many nothing more is sent until they are committed: the disk may be full. */
const MAX_SETTLED = 1_000;
/** So many lanes that could not be served mean that none can. */
const MAX_FAULTS = 3;
/** A channel that is not in the settings may be so by mistake: as long as attempts take, what waits for it waits. */
const UNCONFIGURED_MS = 4 * 86_400_000;
const UNCONFIGURED_LOOK_MS = 3_600_000;
/** What a clock that was ahead has written may lie at most so far ahead: the longest gathering, the longest retry. */
const MAX_WAIT_MS = { first: 3_600_000, retry: 30 * 3_600_000 };
const MAX_DESTINATIONS = 10_000;
/** In this order: what works goes first. */
const KINDS = ['proven', 'unproven', 'proven_callback', 'callback'] as const;

/**
 * Sends what the ledger says must be sent: ledger → channel → ledger.
 *
 * A delivery stays in the ledger as waiting until its result is on the disk. A crash in between sends it again, with the
 * same id. Per destination there is a lane with its pace; lanes take turns, each as far as it has room. A lane is in
 * exactly one place: ready (there may be something to send now), queued (it waits for its time), or neither (there is
 * nothing, or it has no room until an attempt ends).
 */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #lanes = new Map<string, DestinationQueue>();
  readonly #queue = new DueQueue<DestinationQueue>();
  readonly #ready = KINDS.map((kind) => ({ kind, lanes: new ReadyQueue(kind) }));
  readonly #places: AttemptSlots;
  #settled: Settled[] = [];
  /** The ledger did not take the newest results: what is sent now would be sent again after a crash. */
  #isUnkept = false;
  #cancelTurn: (() => void) | undefined;
  #cancelFlush: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #unlisten: (() => void) | undefined;
  readonly #attempts = new Set<Promise<void>>();
  readonly #calledOff = new AbortController();
  #isRunning = false;
  #stopping: Promise<void> | undefined;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.#places = new AttemptSlots(deps.clock);
  }

  /** Goes on with everything that waits. */
  start(): void {
    const { store, clock } = this.#deps;
    store.correctTimes(clock.now(), MAX_WAIT_MS);
    this.#isRunning = true;
    this.#unlisten = store.onWaiting((destinations) => {
      for (const destination of destinations) this.#makeReady(this.#laneOf(destination));
    });
    for (const { destination, dueAt } of store.destinations()) this.#enqueue(this.#laneOf(destination), dueAt);
    this.#setTimer();
  }

  /** Sends nothing more, waits up to `limitMs` for what is under way and keeps what came of it; the rest is sent again. */
  stop(limitMs: number): Promise<void> {
    this.#stopping ??= this.#stop(limitMs);
    return this.#stopping;
  }

  async #stop(limitMs: number): Promise<void> {
    this.#isRunning = false;
    this.#unlisten?.();
    this.#cancelTurn?.();
    this.#cancelTimer?.();
    if (limitMs <= 0) this.#calledOff.abort();
    const cancelLimit = this.#deps.clock.after(limitMs, () => this.#calledOff.abort());
    await Promise.all(this.#attempts);
    cancelLimit();
    this.#cancelFlush?.();
    this.#flush();
    this.#cancelFlush?.();
  }

  #laneOf(destination: string): DestinationQueue {
    const known = this.#lanes.get(destination);
    if (known) return known;
    const lane = new DestinationQueue(destination, this.#deps.concurrency);
    this.#lanes.set(destination, lane);
    return lane;
  }

  /** There may be something to send; when its pause is over, if it has one. */
  #makeReady(lane: DestinationQueue): void {
    this.#dequeue(lane);
    if (lane.pausedUntil > this.#deps.clock.now()) {
      this.#enqueue(lane, lane.pausedUntil);
      this.#setTimer();
      return;
    }
    this.#addReady(lane);
    this.#wakeUp();
  }

  #addReady(lane: DestinationQueue): void {
    this.#ready.find(({ kind }) => kind === lane.priority)?.lanes.add(lane);
  }

  #wakeUp(): void {
    if (this.#isRunning) this.#cancelTurn ??= this.#deps.clock.after(0, () => this.#turn());
  }

  #enqueue(lane: DestinationQueue, dueAt: number): void {
    this.#dequeue(lane);
    lane.readyAs = null;
    lane.dueAt = Math.max(dueAt, lane.pausedUntil);
    lane.isScheduled = true;
    this.#queue.add(lane);
  }

  #dequeue(lane: DestinationQueue): void {
    if (lane.isScheduled) this.#queue.remove(lane);
    lane.isScheduled = false;
  }

  #setTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const { earliest } = this.#queue;
    if (!earliest || !this.#isRunning) return;
    const { clock } = this.#deps;
    this.#cancelTimer = clock.after(Math.max(1, earliest.dueAt - clock.now()), () => this.#wake());
  }

  #wake(): void {
    const now = this.#deps.clock.now();
    for (let lane = this.#queue.earliest; lane && lane.dueAt <= now; lane = this.#queue.earliest) this.#makeReady(lane);
    this.#setTimer();
  }

  #turn(): void {
    this.#cancelTurn = undefined;
    if (!this.#isRunning || this.#isUnkept || this.#settled.length >= MAX_SETTLED) return;
    let faults = 0;
    for (let lane = this.#takeReady(); lane; lane = this.#takeReady()) {
      try {
        this.#serve(lane);
      } catch (error) {
        this.#deps.onFailed(error);
        this.#enqueue(lane, this.#deps.clock.now() + RETRY_MS);
        if (++faults < MAX_FAULTS) continue;
        this.#cancelTurn = this.#deps.clock.after(RETRY_MS, () => this.#turn());
        break;
      }
    }
    this.#setTimer();
  }

  /** The lane that has waited the longest for its turn, where there is a place for its attempt. */
  #takeReady(): DestinationQueue | undefined {
    for (const { kind, lanes } of this.#ready) {
      const lane = this.#places.available(kind) > 0 ? lanes.take() : undefined;
      if (lane) return lane;
    }
    return undefined;
  }

  /** Attempts at what is due, as many as there is room for; then it is the others' turn. */
  #serve(lane: DestinationQueue): void {
    const room = Math.min(lane.available, this.#places.available(lane.priority));
    if (room <= 0) return;
    const { destination } = lane;
    const { store, clock, channelOf } = this.#deps;
    const now = clock.now();
    if (lane.pausedUntil > now) {
      this.#enqueue(lane, lane.pausedUntil);
      return;
    }
    const channel = channelOf(destination);
    if (!channel) {
      store.giveUp(destination, now - UNCONFIGURED_MS, now);
      this.#rest(lane, store.nextDueAt(destination, lane.inFlight) === null ? null : now + UNCONFIGURED_LOOK_MS);
      return;
    }
    const { maxBatch } = channel;
    const due = store.due(destination, { now, limit: room * maxBatch, except: lane.inFlight });
    if (due.length === 0) {
      this.#rest(lane, store.nextDueAt(destination, lane.inFlight));
      return;
    }
    const deliverable = due.filter((waiting): waiting is DueDelivery => !('unreadable' in waiting.event));
    for (const waiting of toMessages(deliverable, maxBatch).slice(0, room))
      this.#attempts.add(this.#attempt(lane, channel, waiting));
    for (const waiting of due)
      if ('unreadable' in waiting.event) this.#bury(lane, channel, waiting as UnreadableDelivery);
    this.#addReady(lane);
  }

  /** Nothing is due there: until the next one is, or something new comes. */
  #rest(lane: DestinationQueue, dueAt: number | null): void {
    if (dueAt !== null) this.#enqueue(lane, dueAt);
    else if (lane.isIdle && (!lane.isProven || this.#lanes.size > MAX_DESTINATIONS))
      this.#lanes.delete(lane.destination);
  }

  #attempt(lane: DestinationQueue, channel: Channel, waiting: readonly DueDelivery[]): Promise<void> {
    const leave = this.#places.acquire(lane.priority, () => this.#wakeUp());
    lane.started(waiting.map(({ id }) => id));
    const attempt = send(channel, waiting, {
      clock: this.#deps.clock,
      stop: this.#calledOff.signal,
      onFailed: this.#deps.onFailed,
      onUnreadable: this.#deps.onUnreadable,
    })
      .then(({ sent, at }) => this.#ended(lane, { channel, sent, at }))
      .catch((error) => this.#deps.onFailed(error))
      .finally(() => {
        leave();
        this.#attempts.delete(attempt);
        this.#wakeUp();
      });
    return attempt;
  }

  #ended(
    lane: DestinationQueue,
    { channel, sent, at }: { channel: Channel; sent: readonly SentPart[]; at: number },
  ): void {
    const now = this.#deps.clock.now();
    // What a stop ended, and not its receiver, never happened, and is sent again at the next start.
    const isCalledOff = this.#calledOff.signal.aborted;
    const ended = isCalledOff ? sent.filter(({ result }) => result.kind === 'delivered') : sent;
    const results = ended.map(({ result }) => result);
    const failed = results.find((result) => result.kind === 'failed' && !result.undeliverable && !result.refused);
    if (results.some(({ kind }) => kind === 'delivered')) {
      lane.succeeded();
      this.#makeReady(lane);
    } else if (failed?.kind === 'failed') lane.failed(now, failed.slowDown);
    else {
      lane.inconclusive();
      if (!isCalledOff) this.#makeReady(lane);
    }
    const random = this.#deps.random();
    for (const { waiting, result } of ended) this.#settle(lane, { channel, waiting, result, at, now, random });
  }

  /** A dead letter at once: there is nothing that could be sent. */
  #bury(lane: DestinationQueue, channel: Channel, waiting: UnreadableDelivery): void {
    lane.inFlight.add(waiting.id);
    this.#deps.onUnreadable(toUnreadableRow(waiting.event));
    const now = this.#deps.clock.now();
    const error = `the event can not be read from the ledger: ${waiting.event.unreadable}`;
    const result = { kind: 'failed' as const, httpStatus: null, error, response: null, undeliverable: true };
    this.#settle(lane, { channel, waiting: [waiting], result, at: now, now, random: 0 });
  }

  #settle(lane: DestinationQueue, attempt: Omit<Parameters<typeof resultsOf>[0], 'destination'>): void {
    this.#settled.push({ lane, ...resultsOf({ destination: lane.destination, ...attempt }) });
    this.#cancelFlush ??= this.#deps.clock.after(GATHER_MS, () => this.#flush());
  }

  /** Results that arrived together are committed together; until they are, their deliveries count as under way. */
  #flush(): void {
    this.#cancelFlush = undefined;
    this.#isUnkept = false;
    const kept = this.#keep(this.#settled.splice(0));
    for (const { lane, settlements } of kept) {
      for (const { deliveryId } of settlements) lane.inFlight.delete(deliveryId);
      if (this.#isRunning) this.#makeReady(lane);
    }
    this.#wakeUp();
    for (const { attempted } of kept) this.#deps.onAttempted(attempted);
  }

  /** Gives back those that are on the disk; the others are tried again. */
  #keep(settled: Settled[]): Settled[] {
    if (settled.length === 0) return [];
    const { store, clock, disableAfterMs, onFailed } = this.#deps;
    try {
      store.settle(
        settled.flatMap(({ settlements }) => settlements),
        disableAfterMs,
      );
      return settled;
    } catch (error) {
      const isUnavailable = error instanceof LedgerUnavailableError;
      // One by one, so that a result that can't be kept doesn't take its neighbours with it.
      if (!isUnavailable && settled.length > 1) return settled.flatMap((one) => this.#keep([one]));
      onFailed(error);
      this.#isUnkept ||= isUnavailable;
      this.#settled.push(...settled);
      this.#cancelFlush ??= clock.after(RETRY_MS, () => this.#flush());
      return [];
    }
  }
}
