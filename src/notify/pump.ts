import { DueQueue } from '../monitor/due-queue.ts';
import { toEventJson } from '../monitor/event-body.ts';
import type { Clock } from '../monitor/ports.ts';
import type { Channel, SendResult } from './channel.ts';
import { Lane } from './lane.ts';
import type { DeliveryStore, Settlement, Waiting } from './ports.ts';
import { jittered } from './schedule.ts';

/** What came of one attempt, committed. */
export type Attempted = {
  destination: string;
  deliveryIds: readonly number[];
  eventIds: readonly string[];
  eventType: string;
  /** The number of this attempt of the first one, from 1. */
  attempt: number;
  durationMs: number;
  result: SendResult;
  next: Settlement['next'];
};

export type PumpDeps = {
  store: DeliveryStore;
  /** How a destination is reached now; undefined: not at all any more. */
  channelOf: (destination: string) => Channel | undefined;
  clock: Clock;
  random: () => number;
  disableAfterMs: number;
  onAttempted: (attempted: Attempted) => void;
  /** The ledger did not take a write, or could not be read; it is tried again. */
  onFailed: (error: unknown) => void;
};

/**
 * Attempts under way at once, to destinations whose newest attempt arrived and to all others. Apart, so that receivers
 * that hang never take a place from those that work.
 */
const MAX_PROVEN = 256;
const MAX_UNPROVEN = 512;
/** Every channel has shorter limits of its own; this is for one that breaks its word. */
const SEND_LIMIT_MS = 30_000;
const RETRY_MS = 1_000;
const MAX_LANES = 10_000;

/**
 * Sends what the ledger says must be sent: ledger → channel → ledger.
 *
 * A delivery stays in the ledger as waiting until its result is on the disk. A crash in between sends it again, with the
 * same id. Per destination there is a lane with its pace; lanes take turns, one attempt each. A lane is in exactly one
 * place: ready (there may be something to send now), queued (it waits for its time), or neither (there is nothing, or
 * it has no room until an attempt ends).
 */
export class Pump {
  readonly #deps: PumpDeps;
  readonly #lanes = new Map<string, Lane>();
  readonly #queue = new DueQueue<Lane>();
  readonly #ready = { proven: new Set<Lane>(), unproven: new Set<Lane>() };
  #underWay = { proven: 0, unproven: 0 };
  #settled: { lane: Lane; settlements: Settlement[]; attempted: Attempted }[] = [];
  #cancelTurn: (() => void) | undefined;
  #cancelFlush: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #unlisten: (() => void) | undefined;
  readonly #attempts = new Set<Promise<void>>();
  readonly #calledOff = new AbortController();
  #isRunning = false;
  #stopping: Promise<void> | undefined;

  constructor(deps: PumpDeps) {
    this.#deps = deps;
  }

  /** Goes on with everything that waits. */
  start(): void {
    const { store } = this.#deps;
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

  #laneOf(destination: string): Lane {
    const known = this.#lanes.get(destination);
    if (known) return known;
    const lane = new Lane(destination);
    this.#lanes.set(destination, lane);
    return lane;
  }

  /** There may be something to send; when its pause is over, if it has one. */
  #makeReady(lane: Lane): void {
    this.#ready.proven.delete(lane);
    this.#ready.unproven.delete(lane);
    this.#dequeue(lane);
    if (lane.pausedUntil > this.#deps.clock.now()) {
      this.#enqueue(lane, lane.pausedUntil);
      this.#setTimer();
      return;
    }
    this.#ready[classOf(lane)].add(lane);
    this.#cancelTurn ??= this.#deps.clock.after(0, () => this.#turn());
  }

  #enqueue(lane: Lane, dueAt: number): void {
    this.#dequeue(lane);
    lane.dueAt = Math.max(dueAt, lane.pausedUntil);
    lane.isQueued = true;
    this.#queue.add(lane);
  }

  #dequeue(lane: Lane): void {
    if (lane.isQueued) this.#queue.remove(lane);
    lane.isQueued = false;
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
    if (!this.#isRunning) return;
    try {
      for (let lane = this.#takeReady(); lane; lane = this.#takeReady()) this.#serve(lane);
    } catch (error) {
      this.#deps.onFailed(error);
      this.#cancelTurn ??= this.#deps.clock.after(RETRY_MS, () => this.#turn());
    }
    this.#setTimer();
  }

  /** The lane that has waited the longest for its turn, where there is a place for its attempt. */
  #takeReady(): Lane | undefined {
    const isFree = { proven: this.#underWay.proven < MAX_PROVEN, unproven: this.#underWay.unproven < MAX_UNPROVEN };
    for (const kind of ['proven', 'unproven'] as const) {
      const [lane] = isFree[kind] ? this.#ready[kind] : [];
      if (lane && this.#ready[kind].delete(lane)) return lane;
    }
    return undefined;
  }

  /** One attempt, if something is due and there is room; then it is the others' turn. */
  #serve(lane: Lane): void {
    if (!lane.hasRoom) return;
    const { destination } = lane;
    const { store, clock, channelOf } = this.#deps;
    const now = clock.now();
    if (lane.pausedUntil > now) {
      this.#enqueue(lane, lane.pausedUntil);
      return;
    }
    try {
      const channel = channelOf(destination);
      if (!channel) store.giveUp(destination, 'not_configured', now);
      const query = { now, limit: channel?.maxBatch ?? 0, except: lane.busy };
      const waiting = channel ? ofOneType(store.due(destination, query)) : [];
      if (channel && waiting.length > 0) {
        this.#attempts.add(this.#attempt(lane, channel, waiting));
        this.#ready[classOf(lane)].add(lane);
      } else this.#rest(lane, store.nextDueAt(destination, lane.busy));
    } catch (error) {
      this.#ready[classOf(lane)].add(lane);
      throw error;
    }
  }

  /** Nothing is due there: until the next one is, or something new comes. */
  #rest(lane: Lane, dueAt: number | null): void {
    if (dueAt !== null) this.#enqueue(lane, dueAt);
    else if (lane.isIdle && (!lane.isProven || this.#lanes.size > MAX_LANES)) this.#lanes.delete(lane.destination);
  }

  #attempt(lane: Lane, channel: Channel, waiting: readonly Waiting[]): Promise<void> {
    const kind = classOf(lane);
    this.#underWay[kind] += 1;
    lane.begin(waiting.map(({ id }) => id));
    const attempt = this.#send(channel, waiting)
      .then(({ result, at }) => this.#ended(lane, { channel, waiting, result, at }))
      .catch((error) => this.#deps.onFailed(error))
      .finally(() => {
        this.#underWay[kind] -= 1;
        this.#attempts.delete(attempt);
        if (this.#isRunning) this.#cancelTurn ??= this.#deps.clock.after(0, () => this.#turn());
      });
    return attempt;
  }

  async #send(channel: Channel, waiting: readonly Waiting[]): Promise<{ result: SendResult; at: number }> {
    const { clock, onFailed } = this.#deps;
    const at = clock.now();
    const limit = new AbortController();
    const cancelLimit = clock.after(SEND_LIMIT_MS, () => limit.abort());
    try {
      const batch = waiting.map(({ event, callbackUrl }) => ({ event, json: toEventJson(event), callbackUrl }));
      const signal = AbortSignal.any([limit.signal, this.#calledOff.signal]);
      return { result: await Promise.race([channel.send(batch, signal), endOf(signal)]), at };
    } catch (error) {
      onFailed(error);
      return {
        result: { kind: 'failed', httpStatus: null, error: 'a fault of dawatch: see its log', response: null },
        at,
      };
    } finally {
      cancelLimit();
    }
  }

  #ended(lane: Lane, attempt: { channel: Channel; waiting: readonly Waiting[]; result: SendResult; at: number }): void {
    const { channel, waiting, result, at } = attempt;
    const { clock } = this.#deps;
    const now = clock.now();
    if (result.kind === 'delivered') lane.succeeded();
    else if (this.#calledOff.signal.aborted) {
      // The stop ended it, not its receiver: it never happened, and is sent again at the next start.
      lane.calledOff();
      return;
    } else lane.failed(now, result.slowDown);
    const [first] = waiting;
    if (!first) return;
    const tried = Math.max(...waiting.map(({ attempts }) => attempts)) + 1;
    const next = this.#nextOf(result, channel, tried, now);
    const durationMs = now - at;
    const failure = result.kind === 'failed' ? result.error : null;
    const kept = { at, durationMs, httpStatus: result.httpStatus, error: failure, response: result.response };
    this.#settled.push({
      lane,
      settlements: waiting.map(({ id }) => ({ deliveryId: id, destination: lane.destination, attempt: kept, next })),
      attempted: {
        destination: lane.destination,
        deliveryIds: waiting.map(({ id }) => id),
        eventIds: waiting.map(({ event }) => event.id),
        eventType: first.event.type,
        attempt: tried,
        durationMs,
        result,
        next,
      },
    });
    this.#cancelFlush ??= clock.after(0, () => this.#flush());
  }

  /** What was sent as one message stays one: it is tried again together. */
  #nextOf(result: SendResult, channel: Channel, tried: number, now: number): Settlement['next'] {
    if (result.kind === 'delivered') return { kind: 'delivered' };
    if (result.gone) return { kind: 'gone' };
    const delayMs = channel.retryDelayMs(tried);
    if (delayMs === null) return { kind: 'dead', reason: 'attempts_used_up' };
    const wishedMs = result.slowDown?.retryAfterMs ?? 0;
    return { kind: 'retry', at: now + Math.max(jittered(delayMs, this.#deps.random()), wishedMs) };
  }

  /** Results that arrived together are committed together; until they are, their deliveries count as under way. */
  #flush(): void {
    this.#cancelFlush = undefined;
    if (this.#settled.length === 0) return;
    const { store, clock, disableAfterMs, onAttempted, onFailed } = this.#deps;
    try {
      store.settle(
        this.#settled.flatMap(({ settlements }) => settlements),
        disableAfterMs,
      );
    } catch (error) {
      onFailed(error);
      this.#cancelFlush = clock.after(RETRY_MS, () => this.#flush());
      return;
    }
    for (const { lane, settlements, attempted } of this.#settled.splice(0)) {
      for (const { deliveryId } of settlements) lane.busy.delete(deliveryId);
      onAttempted(attempted);
      if (this.#isRunning) this.#makeReady(lane);
    }
  }
}

/** What counts where a channel does not end when it is told to. */
function endOf(signal: AbortSignal): Promise<SendResult> {
  const result: SendResult = { kind: 'failed', httpStatus: null, error: 'it took too long', response: null };
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(result), { once: true }));
}

function classOf(lane: Lane): 'proven' | 'unproven' {
  return lane.isProven ? 'proven' : 'unproven';
}

function ofOneType(waiting: readonly Waiting[]): Waiting[] {
  return waiting.filter(({ event }) => event.type === waiting[0]?.event.type);
}
