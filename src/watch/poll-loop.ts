import type { Observation } from '../domain/classify.ts';
import type { Clock } from '../domain/clock.ts';
import { UpstreamEventType } from '../domain/notifications/events.ts';
import type { TransitionContext } from '../domain/transition.ts';
import { BreakerState } from '../domain/upstream-health.ts';
import type { Paced } from '../pacing/entry.ts';
import type { Pacer } from '../pacing/scheduler.ts';
import { type Finality, FinalityBounds } from './finality.ts';
import { OnDemandPolls, type OnDemandResult } from './on-demand-polls.ts';
import {
  LedgerUnavailableError,
  type PollEngine,
  type RecordedObservation,
  type UpstreamChange,
  type WatcherLedger,
} from './ports.ts';
import { TimeLimits } from './time-limits.ts';

export type PollLoopDeps = {
  upstream: string;
  pacer: Pacer;
  ledger: WatcherLedger;
  engine: PollEngine;
  clock: Clock;
  recheck: boolean;
  // None of these throws: see listeners.ts.
  /** Every committed observation. */
  onRecorded: (recorded: RecordedObservation) => void;
  onFinalized: (finality: Finality) => void;
  /** The upstream went out, came back, or refuses us for another reason than before; committed. */
  onUpstream: (change: UpstreamChange) => void;
  /** The ledger did not take a write, or could not be read; it is tried again. */
  onWriteFailed: (error: unknown) => void;
};

/** A question out of turn that has no place in the budget for so long is not asked. */
const MAX_ASK_WAIT_MS = 10_000;
/** A little longer than a place was promised for, so that a caller is not given up exactly when its place becomes free. */
export const ON_DEMAND_WAIT_MS = MAX_ASK_WAIT_MS + 1_000;
/** How long nothing is asked after the ledger did not take a write: answers that can't be kept are wasted requests. */
const WRITE_RETRY_MS = 1_000;
/** How far ahead the ledger is told that this process asks: one small write in that time. */
const ASK_AHEAD_MS = 60_000;
/** How long a submission waits whose answer can't be kept although the ledger can be written: a fault of ours. */
const POISON_RETRY_MS = 60_000;
/** Submissions that are taken up from the ledger in one piece after a restart. */
const RESUMED_AT_ONCE = 5_000;
/** On whose behalf the watch itself asks out of turn. No credential has this name. */
const PROOF_CLIENT = 'store-evidence';

/**
 * The loop of one upstream: pacer → engine → ledger → pacer. Answers that arrive together are committed together.
 *
 * A lane is idle until `start`, then polls until `stop`. While it polls there is always either an answer to come or a
 * timer to go off, so nothing waits for ever; and what memory holds is rebuilt from the ledger by the next `start`.
 */
export class PollLoop {
  readonly #deps: PollLoopDeps;
  #running = false;
  /** Stopped, and whatever it closed is gone: answers that still come are dropped. */
  #isOver = false;
  #askedUntil = Number.NEGATIVE_INFINITY;
  readonly #limits: TimeLimits;
  #skippedMs = 0;
  #arrived: Observation[] = [];
  #cancelFlush: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  /** Undefined: all that the ledger has open is known. */
  #cancelResume: (() => void) | undefined;
  #blockedUntil = 0;
  #writeFailed = false;
  /** Turns of the breaker that the ledger has not taken yet. */
  readonly #turns: UpstreamChange[] = [];
  readonly #batches = new Set<Promise<void>>();
  readonly #questions: OnDemandPolls;
  readonly #finalities = new FinalityBounds();
  #isQuestionsTurn = false;

  constructor(deps: PollLoopDeps) {
    this.#deps = deps;
    this.#questions = new OnDemandPolls(deps.clock);
    this.#limits = new TimeLimits(deps);
  }

  /** Whether the ledger refused the newest write, or could not be read. */
  get writeFailed(): boolean {
    return this.#writeFailed;
  }

  get pacer(): Pacer {
    return this.#deps.pacer;
  }

  /** What the upstream's outage clock shows; every time limit moves by it. */
  outageMs(): number {
    return this.#limits.outageMs(this.now());
  }

  /**
   * Takes note of a step of the clock, and returns the time. Nobody knows how much of a step has really passed, so the budget counts as
   * spent: a window of the upstream may only just have begun.
   */
  now(): number {
    const { clock, pacer } = this.#deps;
    const now = clock.now();
    const skippedMs = clock.skippedMs?.() ?? 0;
    if (!this.#running || skippedMs === this.#skippedMs) return now;
    this.#limits.skip(skippedMs - this.#skippedMs, now);
    this.#skippedMs = skippedMs;
    pacer.resumeBudget(now, now);
    try {
      // What is tracked from now on must not count it.
      this.#limits.write();
    } catch (error) {
      this.#postpone([], error);
    }
    return now;
  }

  start(): void {
    const { pacer, ledger, clock, upstream } = this.#deps;
    const now = clock.now();
    this.#skippedMs = clock.skippedMs?.() ?? 0;
    const record = ledger.upstream(upstream);
    this.#limits.restore(record, now);
    if (record.outSince !== null) pacer.restoreOutage(record.state, Math.min(record.outSince, now), now);
    if (record.pollingUntil !== null) pacer.resumeBudget(record.pollingUntil, now);
    if (record.snapshot !== null) pacer.recall(record.snapshot);
    const first = ledger.listWatched(upstream, { after: 0, limit: RESUMED_AT_ONCE });
    this.#running = true;
    this.#resume(first);
  }

  /** A new submission is to be asked about. Until `start`, and while older ones are taken up, it is found behind them in the ledger. */
  add(item: Paced, now: number): void {
    if (this.#running && !this.#cancelResume) this.#deps.pacer.add(item, now);
  }

  /**
   * Takes up what the ledger has open, piece by piece, so that requests are served in between: a million take seconds. Nothing
   * is asked before the last of them is known, because what an answer means depends on the others.
   */
  #resume({ watched, next }: ReturnType<WatcherLedger['listWatched']>): void {
    const { pacer, clock } = this.#deps;
    const now = this.now();
    for (const item of watched) pacer.resume(item, now);
    this.#cancelResume = next === null ? undefined : clock.after(0, () => this.#resumeAfter(next));
    if (next === null) this.#limits.begin(now);
    this.wake();
  }

  #resumeAfter(after: number): void {
    const { ledger, clock, upstream, onWriteFailed } = this.#deps;
    let page: ReturnType<WatcherLedger['listWatched']>;
    try {
      page = ledger.listWatched(upstream, { after, limit: RESUMED_AT_ONCE });
    } catch (error) {
      this.#writeFailed = true;
      onWriteFailed(error);
      this.#cancelResume = clock.after(WRITE_RETRY_MS, () => this.#resumeAfter(after));
      return;
    }
    this.#writeFailed = false;
    this.#resume(page);
  }

  /** Asks nothing more, and waits up to `limitMs` for answers under way; what they say is committed. Later ones are lost. */
  async stop(limitMs: number): Promise<void> {
    if (!this.#running) return;
    this.#running = false;
    this.#cancelResume?.();
    this.#cancelTimer?.();
    const { clock } = this.#deps;
    await new Promise<void>((resolve) => {
      const cancelLimit = clock.after(limitMs, resolve);
      void Promise.all(this.#batches).then(() => {
        cancelLimit();
        resolve();
      });
    });
    this.#flush();
    this.#isOver = true;
    this.#endAsking();
    this.#questions.close();
  }

  /**
   * One answer about any submission, tracked or not, out of turn but within the budget. Whoever asks while an answer is
   * on the way shares it. Clients take turns for places in the budget. What it says of a tracked submission is committed first, if the ledger can be written.
   */
  pollOnDemand(submissionId: string, client: string): Promise<OnDemandResult> {
    const { pacer } = this.#deps;
    const unanswered = (reason: 'budget' | 'out' | 'stopping', retryAfterMs: number): Promise<OnDemandResult> =>
      Promise.resolve({ kind: 'unanswered', reason, retryAfterMs });
    if (!this.#running) return unanswered('stopping', 1_000);
    if (!this.#questions.has(submissionId)) {
      const askAt = pacer.askAt();
      const placeInMs = askAt === Number.POSITIVE_INFINITY ? 0 : Math.max(0, askAt - this.now());
      // During an outage nobody waits for a probe: either this question is the one that is due, or it is answered at once.
      if (pacer.breaker.isOpen && placeInMs > 0) return unanswered('out', placeInMs);
      if (placeInMs > MAX_ASK_WAIT_MS || !this.#questions.mayQueue(client)) return unanswered('budget', placeInMs);
    }
    const limits = { placeWithinMs: ON_DEMAND_WAIT_MS, answerWithinMs: pacer.leaseMs };
    const asked = this.#questions.add(submissionId, limits, client);
    this.wake();
    return asked;
  }

  #endAsking(): void {
    const { ledger, pacer, upstream, onWriteFailed } = this.#deps;
    try {
      ledger.recordPolling(upstream, this.now(), pacer.learned());
      this.#limits.write();
    } catch (error) {
      onWriteFailed(error);
    }
  }

  /** Something is new: submissions were added, answers came, or a timer went off. Hands out what is due. */
  wake(): void {
    if (!this.#running || this.#cancelResume) return;
    const { pacer, clock } = this.#deps;
    const now = this.now();
    if (now >= this.#blockedUntil && this.#mayAsk(now)) {
      const batch = this.#takeBatch(now);
      if (batch.length > 0) this.#poll(batch);
    }
    this.#cancelTimer?.();
    const askAt = this.#questions.isWaiting ? pacer.askAt() : Number.POSITIVE_INFINITY;
    const wakeAt = Math.max(this.#blockedUntil, Math.min(askAt, pacer.wakeAt()));
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = clock.after(Math.max(1, wakeAt - now), () => this.wake());
  }

  /**
   * The ledger knows until when this process may be asking, so that the next one knows what of the budget may be spent. It
   * is written ahead, with what the pacer has learned, and again after a write failed: what could not be kept is not asked.
   */
  #mayAsk(now: number): boolean {
    if (now < this.#askedUntil && !this.#writeFailed) return true;
    const { ledger, upstream, pacer } = this.#deps;
    if (pacer.wakeAt() > now && !this.#questions.isWaiting) return false;
    try {
      this.#askedUntil = now + ASK_AHEAD_MS;
      ledger.recordPolling(upstream, this.#askedUntil, pacer.learned());
      this.#limits.write();
      this.#writeFailed = false;
      return true;
    } catch (error) {
      this.#postpone([], error);
      return false;
    }
  }

  /** Place by place in turns, so that neither questions nor the submissions that are due can starve the other. */
  #takeBatch(now: number): string[] {
    const batch: string[] = [];
    const takeDue = () => this.#deps.pacer.next(now, 1)[0];
    for (;;) {
      const question = this.#isQuestionsTurn ? this.#takeQuestion(now) : undefined;
      const due = question === undefined ? takeDue() : undefined;
      const submissionId = question ?? due ?? this.#takeQuestion(now);
      if (submissionId === undefined) return batch;
      this.#isQuestionsTurn = due !== undefined;
      batch.push(submissionId);
    }
  }

  #takeQuestion(now: number): string | undefined {
    for (let submissionId = this.#questions.next; submissionId !== undefined; submissionId = this.#questions.next) {
      const place = this.#deps.pacer.ask(submissionId, now);
      if (place === 'wait') return undefined;
      this.#questions.take(place === 'sent');
      if (place === 'sent') return submissionId;
    }
    return undefined;
  }

  #poll(submissionIds: string[]): void {
    const { engine, upstream } = this.#deps;
    const batch = engine.poll({ upstream, submissionIds }, (observation) => this.#arrive(observation));
    const ended = batch.finally(() => this.#batches.delete(ended));
    this.#batches.add(ended);
  }

  #arrive(observation: Observation): void {
    if (this.#isOver) return;
    this.#arrived.push(observation);
    this.#cancelFlush ??= this.#deps.clock.after(0, () => this.#flush());
  }

  /** One transaction for everything that arrived since the last one. */
  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    const observations = this.#arrived;
    if (observations.length === 0) return;
    this.#arrived = [];
    this.#limits.observe(observations);
    const recorded = this.#record(observations);
    this.#saveTurns();
    for (const entry of recorded) this.#deps.onRecorded(entry);
    const proof = this.#limits.proofWanted(recorded, this.now());
    if (proof !== undefined) void this.pollOnDemand(proof, PROOF_CLIENT);
    for (const observation of observations) this.#questions.resolve(observation);
    const { breaker } = this.#deps.pacer;
    if (breaker.isOpen) this.#questions.rejectWaiting(Math.max(1_000, breaker.probeAt - this.now()));
    this.wake();
  }

  #record(observations: Observation[]): RecordedObservation[] {
    let recorded: RecordedObservation[];
    // Only what happens before the commit: after it, an error must not have the same observations recorded once more.
    try {
      recorded = this.#deps.ledger.record(observations, this.#context());
    } catch (error) {
      // One by one, so that an observation that cannot be recorded does not prevent the others from being recorded.
      if (observations.length > 1 && !(error instanceof LedgerUnavailableError))
        return observations.flatMap((one) => this.#record([one]));
      this.#postpone(observations, error);
      return [];
    }
    this.#writeFailed = false;
    const finalities = this.#finalities.of(recorded, this.#deps.pacer);
    this.#learn(observations, recorded);
    for (const finality of finalities) this.#deps.onFinalized(finality);
    return recorded;
  }

  #learn(observations: Observation[], recorded: RecordedObservation[]): void {
    const { pacer } = this.#deps;
    const now = this.now();
    const newest = new Map(recorded.map(({ submission }) => [submission.submissionId, submission]));
    for (const observation of observations) {
      const state = pacer.observe(observation, newest.get(observation.submissionId)?.watched ?? false, now);
      if (state !== null) this.#turn(state, now);
    }
    // A question out of turn may find changed what was settled: it is asked about again, as after any finality.
    for (const submission of newest.values())
      if (submission.watched && submission.finalizedAt !== null)
        pacer.resume({ ...submission, seen: true, finalizedAt: now }, now);
  }

  #context(): TransitionContext {
    return { ...this.#limits.context(this.now(), this.#blockedUntil), recheck: this.#deps.recheck };
  }

  /** The begin and end of an outage are kept, so that time limits count it even if this process dies within. */
  #turn(state: BreakerState, now: number): void {
    const record = this.#limits.turn(state, now);
    this.#turns.push({ upstream: this.#deps.upstream, at: now, event: EVENT_OF[state], record });
  }

  /** Outages and pauses that can't be kept now are kept with the next answers. */
  #saveTurns(): void {
    const { ledger, onUpstream } = this.#deps;
    try {
      for (let turn = this.#turns[0]; turn; turn = this.#turns[0]) {
        ledger.recordUpstream(turn);
        this.#turns.shift();
        onUpstream(turn);
      }
      this.#limits.pause(this.now());
    } catch (error) {
      this.#postpone([], error);
    }
  }

  /** The answers are lost, the submissions are not: they are asked about again. */
  #postpone(observations: Observation[], error: unknown): void {
    const { pacer, onWriteFailed } = this.#deps;
    const now = this.now();
    this.#writeFailed ||= error instanceof LedgerUnavailableError;
    if (this.#writeFailed) this.#blockedUntil = now + WRITE_RETRY_MS;
    const dueAt = now + (this.#writeFailed ? WRITE_RETRY_MS : POISON_RETRY_MS);
    for (const { submissionId } of observations) pacer.retry(submissionId, dueAt, now);
    onWriteFailed(error);
  }
}

const EVENT_OF = {
  [BreakerState.closed]: UpstreamEventType.up,
  [BreakerState.down]: UpstreamEventType.down,
  [BreakerState.unauthorized]: UpstreamEventType.unauthorized,
} as const satisfies Record<BreakerState, UpstreamEventType>;
