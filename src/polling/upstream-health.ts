import { MAX_RETRY_AFTER_MS } from '../lib/http-call.ts';
import type { Observation } from '../submissions/classify.ts';
import { BreakerState, isSeen, type UpstreamRecord } from '../submissions/upstream.ts';

export type BreakerSettings = {
  failures: number;
  /** Delay of the first probe; it doubles with each further probe. */
  probeMs: number;
  maxProbeMs: number;
};

/** A control while the upstream has returned nothing else: no upstream gives this id out. */
export const MADE_UP_ID = '00000000-0000-0000-0000-000000000000';

/** Submissions that the upstream returned, which are remembered to test it with. */
const MAX_RETURNED = 10;
/** After a 429 without a usable Retry-After: 1 s, 2 s, 4 s … up to this. */
const MAX_PAUSE_MS = 60_000;
/** A longer pause is reported. */
const LONG_PAUSE_MS = 30_000;
const MAX_REASON_CHARS = 200;

/** Returns the response in one line: `HTTP 500 …`, `the connection was refused`. */
export function reasonOf(observation: Observation): string {
  const text = 'error' in observation ? (observation.error ?? '') : '';
  const line = text.replace(/\s+/g, ' ').trim() || observation.kind;
  return line.length > MAX_REASON_CHARS ? `${line.slice(0, MAX_REASON_CHARS)}…` : line;
}

/** What a response says about the upstream; `neutral`: nothing. */
type Meaning = 'good' | 'neutral' | Exclude<BreakerState, 'up'>;

/**
 * The health of one upstream: its circuit breaker, the pause that it asked for, and whether it has
 * proved that its database works. Times are epoch milliseconds.
 *
 *     up            all polls are sent
 *     down          one probe at a time, at growing intervals
 *     unauthorized  the same at the longest interval: the upstream refuses the key
 *
 * A failed poll may concern its submission only. After several failures in a row, a control is
 * polled: a submission that the upstream has returned before. If that fails, too, the circuit
 * breaker opens. The first good response closes it.
 */
export class UpstreamHealth {
  readonly #settings: BreakerSettings;
  readonly #random: () => number;
  #state: BreakerState = BreakerState.up;
  #since = 0;
  #upSince = Number.NEGATIVE_INFINITY;
  #reason: string | null = null;
  #failures = 0;
  #failingSince: number | null = null;
  /** The submissions that failed since the last good response. */
  readonly #failed = new Set<string>();
  /** Whether the upstream did not find a submission that it had returned. */
  #isMissing = false;
  #provenAt = Number.NEGATIVE_INFINITY;
  readonly #returned: string[] = [];
  /** The newest submission that was never polled or returned. */
  #fresh: string | undefined;
  #control: string | undefined;
  #controlledFailures = 0;
  #isProofWanted = false;
  /** Controls and probes since the upstream was last up, of which every second is a control. */
  #tests = 0;
  #probes = 0;
  #probeAt = Number.POSITIVE_INFINITY;
  #probedAt = Number.NEGATIVE_INFINITY;
  #pausedSince = Number.POSITIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #throttledInARow = 0;

  constructor(settings: BreakerSettings, random: () => number) {
    this.#settings = settings;
    this.#random = random;
  }

  get state(): BreakerState {
    return this.#state;
  }

  get isUp(): boolean {
    return this.#state === BreakerState.up;
  }

  /** Start of the outage; only valid during one. */
  get since(): number {
    return this.#since;
  }

  /** End of the last outage; -Infinity: there was none. */
  get upSince(): number {
    return this.#upSince;
  }

  /** The newest response that failed, or asked for a pause. */
  get reason(): string | null {
    return this.#reason;
  }

  /** When the first of the consecutive failures was observed; null: the newest response is good. */
  get failingSince(): number | null {
    return this.#failingSince;
  }

  /** Until when the upstream asked to be left alone, with 429 or Retry-After. */
  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /** Since when each response has asked for a pause; Infinity: the newest one does not. */
  get pausedSince(): number {
    return this.#pausedSince;
  }

  /** Whether the pauses without another response in between last long. */
  get isPauseLong(): boolean {
    return this.#pausedUntil - this.#pausedSince > LONG_PAUSE_MS;
  }

  /** When the next probe may be sent; Infinity while the upstream is up. */
  get probeAt(): number {
    return this.#probeAt;
  }

  /**
   * When the upstream last proved that its database works, by a submission or a 404; Infinity if it
   * has returned no submission yet, so that nothing can prove it.
   */
  get provenAt(): number {
    return this.#returned.length === 0 ? Number.POSITIVE_INFINITY : this.#provenAt;
  }

  /**
   * Continues the outage and pause of an earlier process. A clock that was ahead may have written
   * times.
   */
  restore(record: UpstreamRecord, returnedId: string | undefined, now: number): void {
    if (returnedId !== undefined) this.#returned.push(returnedId);
    const { state, outSince, reason, pausedUntil } = record;
    this.#reason = reason;
    if (pausedUntil !== null && pausedUntil > now)
      this.#pause(now, Math.min(pausedUntil, now + MAX_RETRY_AFTER_MS));
    if (outSince === null) return;
    this.#state = state;
    this.#since = Math.min(outSince, now);
    this.#probeAt = now;
  }

  /** Notes a new submission. `isReturned`: the upstream returned it to an earlier process. */
  add(submissionId: string, isReturned: boolean): void {
    if (isReturned) this.#remember(submissionId);
    else this.#fresh = submissionId;
  }

  hasReturned(submissionId: string): boolean {
    return this.#returned.includes(submissionId);
  }

  /** Asks for a control: a submission that is not found needs the proof that the database works. */
  wantProof(): void {
    this.#isProofWanted = true;
  }

  /** Allows a probe for a caller, unless the last one was just sent or the key is refused. */
  probeForCaller(now: number): void {
    const isDue = now >= this.#probedAt + this.#settings.probeMs;
    if (this.#state === BreakerState.down && isDue) this.#probeAt = Math.min(this.#probeAt, now);
  }

  /** Whether a probe or a control is to be polled as soon as the limits allow it. */
  get isTestDue(): boolean {
    if (!this.isUp) return true;
    const enough = Math.max(this.#settings.failures, this.#controlledFailures + 1);
    return this.#control === undefined && (this.#isProofWanted || this.#failures >= enough);
  }

  /**
   * Returns the submission to test with. In an outage, controls alternate with the newest and the
   * longest due submission, because the upstream may have lost the controls.
   */
  nextTest(
    mayPoll: (submissionId: string) => boolean,
    longestDue: string | undefined,
  ): { submissionId: string; isControl: boolean } {
    const isOther = !this.isUp && this.#tests % 2 === 1;
    const other = this.#fresh !== undefined && mayPoll(this.#fresh) ? this.#fresh : longestDue;
    if (isOther && other !== undefined) return { submissionId: other, isControl: false };
    const isAny = this.#tests % 4 === 2;
    const returned = this.#returned.findLast(
      (id) => mayPoll(id) && (isAny || !this.#failed.has(id)),
    );
    return { submissionId: returned ?? MADE_UP_ID, isControl: true };
  }

  /** Notes that this test was sent, or that a poll of its submission in flight is the test. */
  testing({ submissionId, isControl }: { submissionId: string; isControl: boolean }): void {
    this.#tests++;
    if (isControl) this.#control = submissionId;
    if (submissionId === this.#fresh) this.#fresh = undefined;
    this.#controlledFailures = this.#failures;
    this.#isProofWanted = false;
  }

  /** Schedules the next probe, in case that this one gets no response. */
  probing(now: number): void {
    this.#probes++;
    this.#scheduleProbe(now);
  }

  /** The poll of a submission has ended, with or without a response. */
  ended(submissionId: string): void {
    if (submissionId === this.#control) this.#control = undefined;
  }

  /** `seen`: the upstream has returned it before. Returns the new state; null: unchanged. */
  observe(observation: Observation, seen: boolean, now: number): BreakerState | null {
    const { kind, submissionId } = observation;
    const isControl = submissionId === this.#control;
    this.#observePause(observation, now);
    const meaning = this.#meaningOf(observation, seen, isControl);
    if (isSeen(observation)) this.#remember(submissionId);
    if (isSeen(observation) || (kind === 'not_found' && !observation.ambiguous))
      this.#provenAt = now;
    // A 401 can pass: only several in a row mean that the key is refused.
    if (meaning === 'unauthorized' && isControl) this.#isProofWanted = true;
    if (meaning === 'neutral') return null;
    if (meaning === 'good') return this.#succeed(now);
    this.#failures++;
    this.#failingSince ??= now;
    this.#reason = reasonOf(observation);
    if (kind === 'not_found') this.#isMissing = true;
    if (this.isUp && !isControl) this.#failed.add(submissionId);
    if (!isControl || this.#failures < this.#settings.failures || this.#state === meaning)
      return null;
    if (this.isUp) this.#since = now;
    this.#state = meaning;
    this.#scheduleProbe(now);
    return meaning;
  }

  #meaningOf(observation: Observation, seen: boolean, isControl: boolean): Meaning {
    switch (observation.kind) {
      case 'pending':
      case 'finalized':
      case 'error':
      case 'rejected':
        return 'good';
      case 'not_found': {
        if (!observation.ambiguous) return 'good';
        // A failing database sends the same response for every id. It is a failure for an id that
        // the upstream returned before; for others, only if it returned none.
        if (observation.submissionId === MADE_UP_ID && isControl && this.isUp)
          return this.#isMissing ? 'down' : 'good';
        if (seen || this.hasReturned(observation.submissionId)) return 'down';
        return !this.isUp && this.#returned.length === 0 ? 'good' : 'neutral';
      }
      case 'unavailable':
        // A 4xx concerns only this request.
        return observation.reason === 'refused' ? 'neutral' : 'down';
      case 'unauthorized':
        return 'unauthorized';
      case 'throttled':
        return 'neutral';
      default:
        return observation satisfies never;
    }
  }

  #succeed(now: number): BreakerState | null {
    this.#failures = 0;
    this.#failed.clear();
    this.#isMissing = false;
    this.#controlledFailures = 0;
    this.#tests = 0;
    this.#failingSince = null;
    if (this.isUp) return null;
    this.#state = BreakerState.up;
    this.#upSince = now;
    this.#probes = 0;
    this.#probeAt = Number.POSITIVE_INFINITY;
    return this.#state;
  }

  #remember(submissionId: string): void {
    if (submissionId === this.#fresh) this.#fresh = undefined;
    const index = this.#returned.lastIndexOf(submissionId);
    if (index >= 0) this.#returned.splice(index, 1);
    this.#returned.push(submissionId);
    if (this.#returned.length > MAX_RETURNED) this.#returned.shift();
  }

  #scheduleProbe(now: number): void {
    this.#probedAt = now;
    const { probeMs, maxProbeMs } = this.#settings;
    const growing = Math.min(maxProbeMs, probeMs * 2 ** Math.min(this.#probes, 30));
    const delayMs = this.#state === BreakerState.unauthorized ? maxProbeMs : growing;
    this.#probeAt = now + delayMs * (0.8 + 0.4 * this.#random());
  }

  #observePause(observation: Observation, now: number): void {
    const { kind } = observation;
    if (kind === 'throttled') {
      this.#reason = reasonOf(observation);
      if (observation.retryAfterMs !== null) this.#pause(now, now + observation.retryAfterMs);
      // Responses to requests that were sent before the pause extend it only by their Retry-After.
      if (now < this.#pausedUntil) return;
      this.#pause(now, now + Math.min(MAX_PAUSE_MS, 1_000 * 2 ** this.#throttledInARow));
      this.#throttledInARow = Math.min(this.#throttledInARow + 1, 10);
    } else if (kind === 'unavailable' && observation.retryAfterMs !== null) {
      // A 4xx concerns only its request, and so does its Retry-After.
      if (observation.reason !== 'refused') this.#pause(now, now + observation.retryAfterMs);
    } else if (now >= this.#pausedUntil) {
      this.#throttledInARow = 0;
      this.#pausedSince = Number.POSITIVE_INFINITY;
    }
  }

  #pause(now: number, until: number): void {
    // Without requests it is unknown whether the upstream still asked for a pause.
    const isNew = now > this.#pausedUntil + LONG_PAUSE_MS;
    this.#pausedSince = isNew ? now : Math.min(this.#pausedSince, now);
    this.#pausedUntil = Math.max(this.#pausedUntil, until);
  }
}
