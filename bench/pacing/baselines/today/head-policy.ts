import { BlocksToWait, type HeadPosition } from './blocks-to-wait.ts';
import { HeadClock, HeadTrust } from './head-clock.ts';
import { MAX_RESCHEDULED, NET } from './policy.ts';
import {
  type Candidate,
  ceilingMs,
  type FinalizedHead,
  NEVER,
  type PacingDescription,
  type PolicyReason,
  type PollResult,
} from './port.ts';
import { RowDelay } from './row-delay.ts';
import { SenderQueue } from './sender-queue.ts';

/** Submissions beyond this number are left to the policy that learns without a chain. */
const MAX_FOLLOWED = 100_000;
/** Submissions that are followed from the first head on. */
const MAX_EARLY = 1_000;
/** A submission is followed if it was tracked, and a head arrived, within this time. */
const MAX_AGE_MS = 600_000;
/** A submission that has waited for more blocks is no longer followed. */
const MAX_WAIT_BLOCKS = 24;
/** Slot time that is assumed until two heads have arrived. */
const USUAL_SLOT_MS = 20_000;
/** Probabilities between which a submission is uncertain. */
const UNCERTAIN = { least: 0.03, most: 0.85 };
/** Probabilities of a submission on the certain side of the boundary of a head. */
const CERTAIN = { final: 0.97, open: 0.005 };
/** A poll that leaves a lower probability of being final shows that later ones are open, too. */
const PROBABLY_OPEN = 0.1;
/** A submission whose block is final with this probability can show whether a head is late. */
const PROBE = 0.5;
/** A poll this long after a head shows whether rows are final before it. */
const AT_HEAD_MS = 150;
/** Share of the rows of a block that are final when an open one shows that its block is another. */
const MOST_ROWS = 0.9;
/** Time for which a response is awaited while the delay of rows is unknown. */
const RESPONSE_MS = 300;
/** Number of final submissions after which the delay of rows is known. */
const DELAY_KNOWN = 24;
/** Numbers of blocks by which the heads of one chain do not jump. */
const MOST_JUMP = { up: 1_000, down: 100 };
/** Lag (s) after the next head of a submission that is left to it. */
const END_LAG_S = 1;
/** A curve ends at this probability. */
const COMPLETE = 0.995;
/** A scout is polled on behalf of at most this number of submissions. */
const MAX_DEPENDENTS = 3;
const SILENT_POLL_SLOTS = 0.4;

/**
 * A submission that waits for its block. `start`: the newest head when it began to wait; null while
 * it waits to be sent. `above`: its block is above this number.
 */
class Followed implements Candidate {
  readonly item: Candidate;
  readonly trackedAt: number;
  readonly dueAt = 0;
  order = 0;
  openAt = NEVER;
  beganAt = NEVER;
  start: HeadPosition | null = null;
  above = NEVER;
  /** As `above`, from the next head on: a poll found the submission open with this one. */
  aboveNext = NEVER;

  constructor(item: Candidate) {
    this.item = item;
    this.trackedAt = item.trackedAt;
  }
}

export type HeadStatus = 'arriving' | 'silent' | 'useless';

export type HeadPacingState = {
  slotMs: number | null;
  counts: number[];
  delays: number[];
  senders: number | null;
};

/**
 * Schedules polls by finalized heads. With each head, submissions become final in the order of
 * sending, up to a boundary. Of the uncertain ones, the middle one is polled first, as the scout.
 */
export class HeadPacing {
  readonly #price: number;
  readonly #reschedule: (item: Candidate, dueAt: number) => void;
  readonly #followed = new Map<Candidate, Followed>();
  readonly #early = new Set<Candidate>();
  readonly #trust: HeadTrust;
  #clock = new HeadClock();
  #waits = new BlocksToWait();
  #delay = new RowDelay();
  #queue = new SenderQueue();
  /** Orders up to which submissions are final, and from which they are open, with this head. */
  #boundary = { finalUpTo: 0, openFrom: Number.POSITIVE_INFINITY };
  #uncertain: { first: number; last: number; size: number; scout: Followed } | null = null;
  #probe: Followed | null = null;
  #group = { block: 0, members: 0 };
  /** Polls without a response, while the delay of rows is unknown. */
  #inFlight = { count: 0, sentAt: NEVER };
  #current: Candidate | null = null;
  /** Whether the upstream reported a block as final while the heads were silent. */
  #isRefuted = false;

  constructor(lagPrice: number, reschedule: (item: Candidate, dueAt: number) => void) {
    this.#price = lagPrice;
    this.#trust = new HeadTrust(lagPrice);
    this.#reschedule = reschedule;
  }

  get senders(): number | null {
    return this.#queue.senders;
  }

  get followed(): Iterable<Candidate> {
    return this.#followed.keys();
  }

  get state(): HeadPacingState | null {
    if (!this.#clock.newest && this.#delay.observed === 0) return null;
    return {
      slotMs: this.#clock.slotMs,
      counts: this.#waits.counts,
      delays: this.#delay.weights,
      senders: this.#queue.senders,
    };
  }

  restore({ slotMs, counts, delays, senders }: HeadPacingState): void {
    this.#clock = new HeadClock(slotMs);
    this.#waits = new BlocksToWait(counts);
    this.#delay = new RowDelay(delays);
    this.#queue = new SenderQueue(senders);
    this.#trust.restore();
  }

  /** `arriving`: heads arrive and are right. `useless`: of other blocks, or none ever arrived. */
  status(now: number): HeadStatus {
    const { newest, silentAt, isTooFast, isIncomplete } = this.#clock;
    if (!newest || isTooFast || isIncomplete || !this.#trust.isTrusted || this.#isRefuted)
      return 'useless';
    return now < silentAt ? 'arriving' : 'silent';
  }

  /** Time between two polls on behalf of all while the heads are silent, ms. */
  get silentPollMs(): number {
    return SILENT_POLL_SLOTS * (this.#clock.slotMs ?? USUAL_SLOT_MS);
  }

  follows(item: Candidate): boolean {
    return this.#followed.has(item);
  }

  register(item: Candidate, { polledAt }: { polledAt: number | null }, now: number): void {
    if (this.#clock.newest === null && this.#early.size < MAX_EARLY) this.#early.add(item);
    const isFollowed =
      this.#clock.newest !== null &&
      now < this.#clock.silentAt + MAX_AGE_MS &&
      item.trackedAt > now - MAX_AGE_MS &&
      this.#followed.size < MAX_FOLLOWED;
    if (!isFollowed) return;
    const entry = new Followed(item);
    if (polledAt !== null) entry.openAt = polledAt;
    this.#followed.set(item, entry);
    this.#queue.line.append(entry);
    this.#begin();
  }

  unregister(item: Candidate, now: number): void {
    this.#early.delete(item);
    const entry = this.#followed.get(item);
    if (!entry) return;
    this.#followed.delete(item);
    this.#queue.remove(entry, now);
    this.#queue.clearRequeue(entry);
    this.#begin();
    if (this.#uncertain?.scout === entry) this.#assign(now);
  }

  observeHead(head: FinalizedHead, now: number): void {
    this.#current = null;
    const before = this.#clock.newest;
    const news = this.#clock.observe(head, now);
    this.#trust.settle(this.#clock.newest?.number ?? 0, now);
    const jump = head.number - (before?.number ?? head.number);
    if (news === 'reset' || jump > MOST_JUMP.up || jump < -MOST_JUMP.down) this.#trust.reject();
    if (news === 'old') return;
    this.#isRefuted = false;
    const { at, dueAt } = this.#clock.newest ?? { at: now, dueAt: now };
    this.#trust.nextHead(Math.abs(at - dueAt), this.#followed.size);
    for (const item of this.#early) this.register(item, { polledAt: null }, now);
    this.#early.clear();
    this.#queue.expire(head.number - MAX_WAIT_BLOCKS, now);
    this.#begin();
    for (const [item, entry] of this.#followed) {
      if (entry.order === 0) this.#followed.delete(item);
      if (entry.start === null) continue;
      if (news === 'reset') entry.aboveNext = entry.above = NEVER;
      else entry.above = Math.max(entry.above, entry.aboveNext);
      // Only now is it known which slots stayed empty, and which blocks became final together.
      entry.start = this.#clock.positionOf(entry.beganAt);
    }
    this.#boundary.openFrom = Number.POSITIVE_INFINITY;
    this.#appointProbe(now);
    this.#assign(now);
  }

  /** Whether rows become final after the heads of their blocks, as far as known. */
  get isTimely(): boolean {
    return this.#trust.isTimely;
  }

  /** Returns until when this block was certainly not final, epoch ms; NEVER: not known. */
  openUntil(block: number | null): number {
    return (block === null ? null : this.#clock.finalAt(block)) ?? NEVER;
  }

  lagOf(item: Candidate, { blockNumber, at }: { blockNumber: number | null; at: number }): number {
    const openAt = this.#followed.get(item)?.openAt ?? NEVER;
    const headAt = this.openUntil(blockNumber);
    const from = Math.max(openAt, item.trackedAt);
    if (headAt === NEVER || headAt > at) return Math.max(0, at - from) / 2;
    return Math.min(at - from, this.#delay.lagMs(openAt - headAt, at - headAt));
  }

  learn(item: Candidate, result: PollResult, now: number): void {
    this.#current = item;
    const entry = this.#followed.get(item);
    if (!entry) return;
    this.#inFlight.count = Math.max(0, this.#inFlight.count - 1);
    const { order } = entry;
    const wasUncertain =
      this.#uncertain !== null &&
      (result.kind === 'finalized'
        ? order >= this.#uncertain.first
        : order <= this.#uncertain.last);
    const isScout = this.#uncertain?.scout === entry;
    if (result.kind === 'finalized') this.#final(entry, result.blockNumber, result, now);
    else if (result.kind === 'pending' || result.kind === 'not_found' || result.kind === 'error')
      this.#open(entry, result);
    this.#begin();
    if (entry === this.#probe) this.#appointProbe(now);
    if (wasUncertain || isScout || this.#delay.observed < DELAY_KNOWN) this.#assign(now);
  }

  confirm(item: Candidate, now: number): number {
    const dueAt = this.dueAt(item, now);
    const isProbe = this.#followed.get(item) === this.#probe;
    if (dueAt > now + 1 || this.#delay.observed >= DELAY_KNOWN || isProbe) return dueAt;
    const responseAt = this.#inFlight.sentAt + RESPONSE_MS;
    if (now >= responseAt) this.#inFlight.count = 0;
    if (this.#inFlight.count > this.#delay.observed) return responseAt;
    this.#inFlight = { count: this.#inFlight.count + 1, sentAt: now };
    return dueAt;
  }

  /** Returns the poll time of a followed submission by the present state. */
  dueAt(item: Candidate, now: number): number {
    const entry = this.#followed.get(item);
    const netAt = this.#safetyLimitAt(item, entry?.openAt ?? NEVER, now);
    const headAt = entry && this.#byHeadAt(entry, now);
    const ownAt = Math.min(headAt ?? Number.POSITIVE_INFINITY, this.#clock.silentAt);
    return Math.max(now, ownAt < netAt ? ownAt : netAt);
  }

  gain(item: Candidate, now: number): number {
    const entry = this.#followed.get(item);
    const headAt = this.#clock.newest?.at;
    if (!entry || headAt === undefined) return 0;
    const p = this.#probability(entry);
    const before = p * this.#delay.by(entry.openAt - headAt);
    return (p * this.#delay.by(now - headAt) - before) / Math.max(1e-9, 1 - before);
  }

  reasonOf(item: Candidate, now: number): PolicyReason {
    const entry = this.#followed.get(item);
    if (now >= this.#safetyLimitAt(item, entry?.openAt ?? NEVER, now)) return 'net';
    return this.#uncertain?.scout === entry ? 'scout' : 'head';
  }

  /** See PacingDescription. The next event is the next head; null: no slot time is known. */
  describeSlot(now: number): PacingDescription['slot'] {
    const { newest, slotMs, emptyShare } = this.#clock;
    if (!newest || slotMs === null) return null;
    const slots = Math.max(1, Math.ceil((now - newest.at) / slotMs));
    return { periodMs: slotMs, nextEventAt: newest.at + slots * slotMs, emptyShare };
  }

  /** Returns the distribution of finality time of a submission that is tracked now. */
  curve(now: number): PacingDescription['curve'] {
    const slotMs = this.#clock.slotMs ?? USUAL_SLOT_MS;
    const { number, phase } = this.#clock.positionOf(now);
    const nextAt = this.describeSlot(now)?.nextEventAt ?? now + slotMs;
    const delays = this.#delay.points();
    const curve = [{ afterMs: 0, probability: 0 }];
    let before = 0;
    for (let k = 1; k <= MAX_WAIT_BLOCKS && before < COMPLETE; k++) {
      const by = this.#waits.finalBy({ number, phase }, number + k, number);
      for (const { delayMs, probability } of delays) {
        const afterMs = nextAt + (k - 1) * slotMs + delayMs - now;
        if (delayMs < slotMs)
          curve.push({ afterMs, probability: before + (by - before) * probability });
      }
      before = by;
    }
    return curve;
  }

  #final(entry: Followed, block: number | null, { at, durationMs }: PollResult, now: number): void {
    const { order, trackedAt } = entry;
    const newest = this.#clock.newest?.number ?? 0;
    if (block === null) this.#trust.contradict();
    else {
      if (this.#clock.isKnownAt(trackedAt) && block <= this.#clock.positionOf(trackedAt).number)
        this.#trust.observeOld();
      else if (block > newest) this.#trust.observeEarlier(block, at, newest);
      else this.#trust.confirm();
      if (block > newest && now >= this.#clock.silentAt) this.#isRefuted = true;
      this.#learnFinal(entry, block, at - durationMs / 2);
      this.#boundary.finalUpTo = Math.max(this.#boundary.finalUpTo, order);
    }
    this.#trust.settle(newest, now);
    this.#queue.removeFinal(entry, at);
  }

  #learnFinal(entry: Followed, block: number, readAt: number): void {
    const { order, start, openAt } = entry;
    const finalAt = this.#clock.finalAt(block);
    const slotMs = this.#clock.slotMs ?? USUAL_SLOT_MS;
    if (finalAt !== null && readAt - finalAt < slotMs)
      this.#delay.learn(openAt - finalAt, readAt - finalAt);
    if (finalAt !== null && block === this.#clock.newest?.number) {
      this.#trust.observeOpen(openAt - finalAt);
      if (entry === this.#probe && readAt - finalAt < AT_HEAD_MS) this.#trust.observeEarly();
    }
    if (start) this.#waits.learn(start, block);
    else this.#queue.count.catchUp(order, readAt);
    if (this.#group.block !== block) this.#group = { block, members: 0 };
    this.#group.members++;
    const hasChanged = this.#queue.count.learn(
      order,
      this.#queue.queuedAt(entry),
      block,
      (time) => this.#clock.positionOf(time).number,
      2 / (1 + this.#group.members),
    );
    if (!hasChanged) return;
    // The positions were those of another number of senders.
    this.#waits.forget();
    this.#queue.line.restart();
    for (const followed of this.#followed.values()) followed.start = null;
  }

  #open(entry: Followed, { kind, at, durationMs }: PollResult): void {
    const sentAt = at - durationMs;
    const { newest } = this.#clock;
    if (newest && sentAt >= newest.at && entry.start) {
      const p = this.#probability(entry);
      const rows = this.#delay.by(sentAt - newest.at);
      const left = (p * (1 - rows)) / Math.max(1e-9, 1 - p * rows);
      if (rows >= MOST_ROWS) {
        if (left < PROBABLY_OPEN && entry.order > this.#boundary.finalUpTo)
          this.#boundary.openFrom = Math.min(this.#boundary.openFrom, entry.order);
        entry.aboveNext = newest.number;
      }
    }
    entry.openAt = Math.max(entry.openAt, sentAt);
    if (kind !== 'error') return;
    // The upstream sends it again, behind the others.
    this.#queue.requeue(entry, sentAt);
    entry.start = null;
    entry.above = entry.aboveNext = NEVER;
    if (entry.order === 0) this.#followed.delete(entry.item);
  }

  /** Assigns a start to the submissions that have been sent. */
  #begin(): void {
    let position: HeadPosition = { number: 0, phase: null };
    let beganAt = NEVER;
    const startOf = (time: number) => {
      beganAt = time;
      position = this.#clock.positionOf(time);
      return { slot: position.number, zone: 0 };
    };
    for (const { item } of this.#queue.begin(startOf)) {
      const entry = item as Followed;
      entry.start = position;
      entry.beganAt = beganAt;
    }
  }

  /** Schedules the submissions that are probably final with the newest head. */
  #assign(now: number): void {
    const uncertain: Followed[] = [];
    const ready: Followed[] = [];
    for (const entry of this.#followed.values()) {
      if (ready.length + uncertain.length === MAX_RESCHEDULED) break;
      const p = this.#probability(entry);
      if (this.#isUncertain(entry, p)) uncertain.push(entry);
      else if (p >= UNCERTAIN.least) ready.push(entry);
    }
    uncertain.sort((a, b) => a.order - b.order);
    const scout = uncertain[uncertain.length >> 1];
    this.#uncertain = scout
      ? {
          first: (uncertain[0] as Followed).order,
          last: (uncertain.at(-1) as Followed).order,
          size: uncertain.length,
          scout,
        }
      : null;
    if (scout) this.#pollEarlier(scout, now);
    for (const entry of ready) this.#pollEarlier(entry, now);
  }

  /** Polls the oldest probably-final submission immediately. */
  #appointProbe(now: number): void {
    const entry = this.#trust.isProbeDue
      ? [...this.#followed.values()].find((followed) => this.#probability(followed) >= PROBE)
      : undefined;
    this.#probe = entry ?? null;
    if (entry) this.#pollEarlier(entry, now);
  }

  #isUncertain(entry: Followed, p: number): boolean {
    return (
      p > UNCERTAIN.least && p < UNCERTAIN.most && entry.openAt < (this.#clock.newest?.at ?? NEVER)
    );
  }

  #pollEarlier(entry: Followed, now: number): void {
    if (entry.item === this.#current) return;
    const dueAt = this.dueAt(entry.item, now);
    if (dueAt < entry.item.dueAt - 1) this.#reschedule(entry.item, dueAt);
  }

  #probability(entry: Followed): number {
    const { newest } = this.#clock;
    if (!newest || !entry.start) return 0;
    const p = this.#waits.finalBy(entry.start, newest.number, entry.above);
    if (entry.openAt >= newest.at) return p;
    if (entry.order <= this.#boundary.finalUpTo) return Math.max(p, CERTAIN.final);
    return entry.order >= this.#boundary.openFrom ? Math.min(p, CERTAIN.open) : p;
  }

  /** Returns the poll time after the newest head; null: wait for the next one. */
  #byHeadAt(entry: Followed, now: number): number | null {
    const { newest, slotMs } = this.#clock;
    if (!newest) return null;
    const p = this.#probability(entry);
    if (entry === this.#probe && entry.openAt < newest.at) return newest.at;
    const isScout = this.#uncertain?.scout === entry;
    if (this.#uncertain && !isScout && this.#isUncertain(entry, p)) return null;
    const delayMs = this.#delay.nextPollMs(p, entry.openAt - newest.at, now - newest.at, {
      price: this.#price * (isScout ? Math.min(MAX_DEPENDENTS, this.#uncertain?.size ?? 1) : 1),
      slotMs: slotMs ?? USUAL_SLOT_MS,
      endLagS: END_LAG_S,
    });
    return delayMs === null ? null : newest.at + delayMs;
  }

  #safetyLimitAt({ trackedAt }: Candidate, openAt: number, now: number): number {
    return Math.max(trackedAt, openAt) + ceilingMs(NET, now - trackedAt);
  }
}
