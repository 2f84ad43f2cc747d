import type { Clock } from '../domain/clock.ts';
import { isFinal, type Submission, type TrackRequest } from '../domain/submission.ts';
import type { BreakerState } from '../domain/upstream-health.ts';
import type { PolicyFactory } from '../pacing/policy.ts';
import { type Outlook, Pacer, type PacerSettings } from '../pacing/scheduler.ts';
import { combineListeners, type WatcherListener } from './listeners.ts';
import type { OnDemandResult } from './on-demand-polls.ts';
import { PollLoop } from './poll-loop.ts';
import {
  LedgerUnavailableError,
  type PollEngine,
  type RecordedObservation,
  type TrackResult,
  type WatcherLedger,
} from './ports.ts';

export type WatcherSettings = {
  /** By upstream. */
  pacers: ReadonlyMap<string, PacerSettings>;
  /** When to poll, by upstream. */
  policy: (upstream: string) => PolicyFactory;
  /** Whether a finalized submission is asked about once more, after the pacer's recheckMs. */
  recheck: boolean;
};

export type UpstreamHealth = { upstream: string; state: BreakerState; tracked: number; inFlight: number };
export type UpstreamPacing = UpstreamHealth & Outlook;

/** Watches submissions until they are final: one lane per upstream over one ledger. */
export class Watcher {
  readonly #ledger: WatcherLedger;
  readonly #clock: Clock;
  readonly #lanes = new Map<string, PollLoop>();
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #listener: Required<WatcherListener>;
  #writeFailed = false;
  #stopping: Promise<void> | undefined;

  constructor(deps: {
    settings: WatcherSettings;
    ledger: WatcherLedger;
    engine: PollEngine;
    clock: Clock;
    random: () => number;
    /** Each is called in this order; one that throws affects nothing else. */
    listeners?: readonly WatcherListener[];
  }) {
    const { settings, ledger, engine, clock, random } = deps;
    this.#ledger = ledger;
    this.#clock = clock;
    const listener = combineListeners(deps.listeners ?? []);
    this.#listener = listener;
    for (const [upstream, pacerSettings] of settings.pacers) {
      const pacer = new Pacer({ settings: pacerSettings, policy: settings.policy(upstream), random });
      const { recheck } = settings;
      const onRecorded = (recorded: RecordedObservation) => this.#recorded(recorded);
      const { finalized: onFinalized, upstream: onUpstream, writeFailed: onWriteFailed } = listener;
      const listeners = { onRecorded, onFinalized, onUpstream, onWriteFailed };
      const lane = new PollLoop({ upstream, pacer, ledger, engine, clock, recheck, ...listeners });
      this.#lanes.set(upstream, lane);
    }
  }

  /** Goes on with everything the ledger has open. */
  start(): void {
    for (const lane of this.#lanes.values()) lane.start();
  }

  /** Asks nothing more, waits up to `limitMs` for answers under way and commits them; whoever waits is told at once. */
  stop(limitMs: number): Promise<void> {
    this.#stopping ??= this.#stop(limitMs);
    return this.#stopping;
  }

  hasUpstream(name: string): boolean {
    return this.#lanes.has(name);
  }

  /** Commits, then asks. All of them or none; what is tracked already stays as it is. Throws if the ledger can't write. */
  track(requests: readonly TrackRequest[]): TrackResult {
    const now = this.#now();
    const result = this.#writing(() => this.#ledger.track(requests, now));
    this.#enrol([result], now);
    return result;
  }

  /** The same of several in one commit, each taken or refused for itself. */
  trackGroups(groups: readonly (readonly TrackRequest[])[]): TrackResult[] {
    const now = this.#now();
    const results = this.#writing(() => this.#ledger.trackGroups(groups, now));
    this.#enrol(results, now);
    return results;
  }

  /** Stops asking about submissions, in one commit; what is final stays as it is. Undefined: never tracked. */
  cancel(submissionIds: readonly string[]): (Submission | undefined)[] {
    const now = this.#clock.now();
    const submissions = this.#writing(() => this.#ledger.cancel(submissionIds, now));
    for (const submission of submissions) {
      if (!submission) continue;
      const { submissionId, upstream, watched } = submission;
      // A finalized one that waits for its recheck stays as it is, with that.
      if (!watched) this.#lanes.get(upstream)?.pacer.remove(submissionId, now);
      this.#tell(submissionId);
    }
    return submissions;
  }

  /**
   * One answer about any submission, tracked or not, out of turn but within the upstream's budget. See Lane.ask. `client`:
   * by whom places in the budget are shared.
   */
  pollOnDemand(upstream: string, submissionId: string, client = ''): Promise<OnDemandResult> {
    const lane = this.#lanes.get(upstream);
    return lane
      ? lane.pollOnDemand(submissionId, client)
      : Promise.resolve({ kind: 'unanswered', reason: 'out', retryAfterMs: 0 });
  }

  /**
   * Resolves once the submission is final, the time is over, the monitor stops, or `signal` aborts; then look at it.
   * `current` reads it now: whoever becomes final in between is not missed.
   */
  waitUntilFinal(current: () => Submission | undefined, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const submission = current();
    if (!submission || isFinal(submission.status) || this.#stopping || signal?.aborted) return Promise.resolve();
    const { submissionId } = submission;
    return new Promise((resolve) => {
      const done = () => {
        cancelTimer();
        signal?.removeEventListener('abort', done);
        waiters.delete(done);
        if (waiters.size === 0) this.#waiting.delete(submissionId);
        resolve();
      };
      const waiters = this.#waiting.get(submissionId) ?? new Set();
      this.#waiting.set(submissionId, waiters.add(done));
      const cancelTimer = this.#clock.after(timeoutMs, done);
      signal?.addEventListener('abort', done, { once: true });
    });
  }

  /** When time is up for a submission: its deadline, moved by the outages of its upstream while it is open. */
  deadlineAt(submission: Submission): number {
    if (isFinal(submission.status)) return submission.deadlineAt;
    const outageMs = this.#lanes.get(submission.upstream)?.outageMs() ?? submission.outageMsBefore;
    return submission.deadlineAt + outageMs - submission.outageMsBefore;
  }

  health(): { ledgerWritable: boolean; upstreams: UpstreamHealth[] } {
    const lanes = [...this.#lanes];
    return {
      ledgerWritable: this.#isWritable() && lanes.every(([, lane]) => !lane.writeFailed),
      upstreams: lanes.map(([upstream, { pacer }]) => stateOf(upstream, pacer)),
    };
  }

  /** Why the next question of each upstream goes where it goes. */
  pacing(): UpstreamPacing[] {
    const now = this.#clock.now();
    return [...this.#lanes].map(([upstream, { pacer }]) => ({ ...stateOf(upstream, pacer), ...pacer.outlook(now) }));
  }

  /** The time. A step of the clock counts for what is tracked already, and not for what comes now. */
  #now(): number {
    for (const lane of this.#lanes.values()) lane.now();
    return this.#clock.now();
  }

  #enrol(results: readonly TrackResult[], now: number): void {
    const touched = new Set<PollLoop>();
    for (const result of results) {
      if (result.kind !== 'tracked') continue;
      for (const { submission, isNew } of result.submissions) {
        const lane = this.#lanes.get(submission.upstream);
        if (!isNew || !lane) continue;
        lane.add({ submissionId: submission.submissionId, trackedAt: now, seen: false }, now);
        touched.add(lane);
      }
    }
    for (const lane of touched) lane.wake();
  }

  /** Remembers whether the ledger could be written. */
  #writing<T>(work: () => T): T {
    try {
      const result = work();
      this.#writeFailed = false;
      return result;
    } catch (error) {
      this.#writeFailed ||= error instanceof LedgerUnavailableError;
      throw error;
    }
  }

  /** Once a write failed, whoever asks finds out by trying: nobody may write anything before they know that it works. */
  #isWritable(): boolean {
    if (!this.#writeFailed) return true;
    try {
      this.#writing(() => this.#ledger.probe(this.#clock.now()));
    } catch {}
    return !this.#writeFailed;
  }

  async #stop(limitMs: number): Promise<void> {
    for (const submissionId of [...this.#waiting.keys()]) this.#tell(submissionId);
    await Promise.all([...this.#lanes.values()].map((lane) => lane.stop(limitMs)));
  }

  #recorded(recorded: RecordedObservation): void {
    if (isFinal(recorded.submission.status)) this.#tell(recorded.submission.submissionId);
    this.#listener.recorded(recorded);
  }

  #tell(submissionId: string): void {
    for (const done of [...(this.#waiting.get(submissionId) ?? [])]) done();
  }
}

function stateOf(upstream: string, { breaker, size, inFlight }: Pacer): UpstreamHealth {
  return { upstream, state: breaker.state, tracked: size, inFlight };
}
