import type { Clock } from '../lib/clock.ts';
import type { FinalizedHead, PolicyFactory } from '../pacing/index.ts';
import type { Observation } from '../submissions/classify.ts';
import type { RecordedChange, Verdict } from '../submissions/store-results.ts';
import { isFinal, type Submission } from '../submissions/submission.ts';
import type { SubmissionChange } from '../submissions/submission-store.ts';
import type { UpstreamState } from '../submissions/upstream.ts';
import type { PollingStores } from './deadlines.ts';
import { combineListeners, type WatcherListener } from './listeners.ts';
import { NOT_POLLING, type OnDemandResult } from './on-demand-polls.ts';
import type { PollEngine } from './poll-engine.ts';
import { PollLoop } from './poll-loop.ts';
import { type Outlook, Scheduler, type SchedulerSettings } from './scheduler.ts';

export type WatcherSettings = {
  schedulers: ReadonlyMap<string, SchedulerSettings>;
  policy: (upstream: string) => PolicyFactory;
  /** Whether a finalized submission is polled once more, after the scheduler's `recheckMs`. */
  recheck: boolean;
};

export type UpstreamSummary = {
  upstream: string;
  state: UpstreamState;
  /** The newest response of an outage or a long pause; null: there is none. */
  reason: string | null;
  /** A long pause; null: there is none. */
  pause: { since: number; until: number } | null;
  tracked: number;
  inFlight: number;
};
export type UpstreamPacing = UpstreamSummary & Outlook;

/** If a poll is overdue for longer than this, its loop counts as not running. */
const OVERDUE_MS = 60_000;

/** Watches submissions until they are final: one poll loop per upstream, all over one ledger. */
export class Watcher {
  readonly #ledger: PollingStores;
  readonly #clock: Clock;
  readonly #loops = new Map<string, PollLoop>();
  readonly #recent = new Map<string, RecentPolls>();
  readonly #waiters = new Map<string, Set<() => void>>();
  #stopping: Promise<void> | undefined;

  constructor(deps: {
    settings: WatcherSettings;
    ledger: PollingStores;
    engine: PollEngine;
    clock: Clock;
    random: () => number;
    /** Called in this order; an error in one affects nothing else. */
    listeners?: readonly WatcherListener[];
  }) {
    const { settings, ledger, engine, clock, random } = deps;
    this.#ledger = ledger;
    this.#clock = clock;
    const internal: WatcherListener = {
      polled: (upstream, observation) => this.#recent.get(upstream)?.add(observation),
      recorded: ({ submission }) => {
        if (isFinal(submission.status)) this.#endWaits(submission.submissionId);
      },
      expired: ({ submission }) => this.#endWaits(submission.submissionId),
    };
    ledger.store.changes.onCommitted(this.#onChanges);
    const listener = combineListeners([internal, ...(deps.listeners ?? [])]);
    for (const [upstream, limits] of settings.schedulers) {
      const policy = settings.policy(upstream);
      const scheduler = new Scheduler({ settings: limits, policy, random });
      const { recheck } = settings;
      const loop = { upstream, scheduler, ledger, engine, clock, recheck, listener };
      this.#loops.set(upstream, new PollLoop(loop));
      this.#recent.set(upstream, new RecentPolls());
    }
  }

  /** `testsKeys`: polls a control first, so that a refused key shows before any submission. */
  start(testsKeys = false): void {
    for (const loop of this.#loops.values()) {
      if (testsKeys) loop.scheduler.health.wantProof();
      loop.start();
    }
  }

  /** Stops polling, and commits results within `limitMs`. `waitUntilFinal` resolves immediately. */
  stop(limitMs: number): Promise<void> {
    this.#stopping ??= this.#stop(limitMs);
    return this.#stopping;
  }

  async #stop(limitMs: number): Promise<void> {
    for (const submissionId of [...this.#waiters.keys()]) this.#endWaits(submissionId);
    await Promise.all([...this.#loops.values()].map((loop) => loop.stop(limitMs)));
  }

  /** Passes a finalized block of the upstream's chain to its pacing, and sends due polls. */
  observeHead(upstream: string, head: FinalizedHead): void {
    const loop = this.#loops.get(upstream);
    if (!loop?.isRunning) return;
    loop.scheduler.observeHead(head, this.#clock.now());
    loop.wake();
  }

  /** Records verdicts of the chain; nothing while the ledger fails, or before the start. */
  recordVerdicts(upstream: string, verdicts: readonly Verdict[]): RecordedChange[] {
    return this.#loops.get(upstream)?.recordVerdicts(verdicts) ?? [];
  }

  hasUpstream(name: string): boolean {
    return this.#loops.has(name);
  }

  /** Follows what callers have committed: polls new submissions, and ends waits for ended ones. */
  readonly #onChanges = (changes: readonly SubmissionChange[]): void => {
    const now = this.#clock.now();
    const changed = new Set<PollLoop>();
    for (const { kind, submission } of changes) {
      const { submissionId, upstream, trackedAt, watched } = submission;
      const loop = this.#loops.get(upstream);
      if (kind === 'cancelled') {
        // A finalized submission that awaits its recheck stays watched.
        if (!watched) loop?.scheduler.remove(submissionId, now);
        this.#endWaits(submissionId);
        continue;
      }
      if (kind !== 'deadline')
        loop?.add({ submissionId, trackedAt, seen: false }, now, {
          isRetracked: kind === 'retracked',
        });
      loop?.addDeadline(submission);
      if (loop) changed.add(loop);
    }
    for (const loop of changed) loop.wake();
  };

  pollOnDemand(upstream: string, submissionId: string): Promise<OnDemandResult> {
    return this.#loops.get(upstream)?.pollOnDemand(submissionId) ?? Promise.resolve(NOT_POLLING);
  }

  /**
   * Resolves when the submission is final, time is over, the watcher stops, or `signal` aborts.
   * `current` reads it now, so that a finality meanwhile is not missed.
   */
  waitUntilFinal(
    current: () => Submission | undefined,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<void> {
    const submission = current();
    if (!submission || isFinal(submission.status) || this.#stopping || signal?.aborted)
      return Promise.resolve();
    const { submissionId, upstream, polledAt } = submission;
    // It may be final already, and its first poll is seconds away. Only the first wait polls.
    if (polledAt === null && timeoutMs > 0) void this.pollOnDemand(upstream, submissionId);
    return new Promise((resolve) => {
      const done = () => {
        cancelTimer();
        signal?.removeEventListener('abort', done);
        waiters.delete(done);
        if (waiters.size === 0) this.#waiters.delete(submissionId);
        resolve();
      };
      const waiters = this.#waiters.get(submissionId) ?? new Set();
      this.#waiters.set(submissionId, waiters.add(done));
      const cancelTimer = this.#clock.after(timeoutMs, done);
      signal?.addEventListener('abort', done, { once: true });
    });
  }

  #endWaits(submissionId: string): void {
    for (const done of [...(this.#waiters.get(submissionId) ?? [])]) done();
  }

  /** Returns the polls of an upstream since `at`, oldest first. */
  pollsSince(upstream: string, at: number): RecentPoll[] {
    return this.#recent.get(upstream)?.since(at) ?? [];
  }

  /** Returns when a submission is polled next, at the earliest; null: it is not polled. */
  nextPollAt(submission: Submission): number | null {
    const { submissionId, upstream, watched, status, deadlineAt } = submission;
    const scheduler = this.#loops.get(upstream)?.scheduler;
    const scheduled = watched && scheduler?.find(submissionId);
    if (!scheduler || !scheduled) return null;
    const lastAt = isFinal(status) ? Number.POSITIVE_INFINITY : deadlineAt;
    const dueAt = Math.min(scheduled.dueAt, Math.max(lastAt, this.#clock.now()));
    return Math.max(dueAt, scheduler.closedUntil);
  }

  health(): { ledgerWritable: boolean; upstreams: UpstreamSummary[] } {
    const isWritable = this.#ledger.database.isWritable(this.#clock.now());
    return {
      ledgerWritable:
        isWritable && [...this.#loops.values()].every((loop) => !loop.isLedgerFailing),
      upstreams: this.upstreams(),
    };
  }

  upstreams(): UpstreamSummary[] {
    const now = this.#clock.now();
    return [...this.#loops].map(([upstream, loop]) => healthOf(upstream, loop, now));
  }

  /**
   * Returns the upstreams that are not polled: before the start, after the stop, a minute overdue.
   */
  notPolling(): string[] {
    const overdue = this.#clock.now() - OVERDUE_MS;
    const isPolled = (loop: PollLoop) =>
      loop.isRunning && (loop.isLedgerFailing || loop.scheduler.wakeAt() > overdue);
    return [...this.#loops].filter(([, loop]) => !isPolled(loop)).map(([upstream]) => upstream);
  }

  /** The state of each upstream's pacing. */
  pacing(): UpstreamPacing[] {
    const now = this.#clock.now();
    return [...this.#loops].map(([upstream, loop]) => ({
      ...healthOf(upstream, loop, now),
      ...loop.scheduler.outlook(now),
    }));
  }
}

function healthOf(upstream: string, { scheduler }: PollLoop, now: number): UpstreamSummary {
  const { health, size, inFlight } = scheduler;
  const { isUp, pausedSince: since, pausedUntil: until } = health;
  // The request after a pause may start the next one.
  const isPaused = isUp && health.isPauseLong && (now < until || inFlight > 0);
  return {
    upstream,
    state: isPaused ? 'paused' : health.state,
    reason: isUp && !isPaused ? null : health.reason,
    pause: isPaused ? { since, until } : null,
    tracked: size,
    inFlight,
  };
}

/** A poll that has ended. `at`: when its response arrived, epoch milliseconds. */
export type RecentPoll = { at: number; durationMs: number; result: Observation['kind'] };

/** Those that are kept of each upstream, in memory only. */
export const MAX_RECENT_POLLS = 2_000;

/** The newest polls of one upstream. */
export class RecentPolls {
  readonly #polls: RecentPoll[] = [];

  add({ at, durationMs, kind: result }: Observation): void {
    this.#polls.push({ at, durationMs, result });
    if (this.#polls.length > MAX_RECENT_POLLS) this.#polls.shift();
  }

  since(at: number): RecentPoll[] {
    return this.#polls.filter((poll) => poll.at >= at);
  }
}
