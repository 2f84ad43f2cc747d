import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { Actor } from '../lib/actor.ts';
import type { Clock } from '../lib/clock.ts';
import type { FinalizedHead, PolicyFactory } from '../pacing/index.ts';
import type { OptionsPatch } from '../submissions/option-changes.ts';
import type {
  PollEngine,
  TrackRefusal,
  TrackResult,
  UpdateResult,
  WatcherLedger,
} from '../submissions/ports.ts';
import type { RecentPoll } from '../submissions/recent-poll.ts';
import { isFinal, type Submission, type TrackRequest } from '../submissions/submission.ts';
import { BreakerState, type UpstreamState } from '../submissions/upstream.ts';
import { combineListeners, type WatcherListener } from './listeners.ts';
import type { OnDemandResult } from './on-demand-polls.ts';
import { PollLoop } from './poll-loop.ts';
import { RecentActivity } from './recent-activity.ts';
import { type Outlook, Scheduler, type SchedulerSettings } from './scheduler.ts';

export type WatcherSettings = {
  /** By upstream. */
  schedulers: ReadonlyMap<string, SchedulerSettings>;
  /** Decides when to poll, by upstream. */
  policy: (upstream: string) => PolicyFactory;
  /** Whether a finalized submission is polled once more, after the scheduler's `recheckMs`. */
  recheck: boolean;
};

export type UpstreamSummary = {
  upstream: string;
  state: UpstreamState;
  /** The newest response of an outage; null: there is no outage. */
  reason: string | null;
  tracked: number;
  inFlight: number;
};
export type UpstreamPacing = UpstreamSummary & Outlook;

/** If a poll is overdue for longer than this, its loop counts as not running. */
const OVERDUE_MS = 60_000;
/** Polls that are shown of one submission. */
const MAX_POLLS_OF_ONE = 100;

/** Watches submissions until they are final: one poll loop per upstream, all over one ledger. */
export class Watcher {
  readonly #ledger: WatcherLedger;
  readonly #clock: Clock;
  readonly #loops = new Map<string, PollLoop>();
  readonly #recent = new Map<string, RecentActivity>();
  /** Callbacks of `waitUntilFinal`, by submission id. */
  readonly #waiters = new Map<string, Set<() => void>>();
  #isLedgerFailing = false;
  #stopping: Promise<void> | undefined;

  constructor(deps: {
    settings: WatcherSettings;
    ledger: WatcherLedger;
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
      polled: (upstream, observation) => this.#recent.get(upstream)?.addPoll(observation),
      recorded: ({ submission }) => {
        if (isFinal(submission.status)) this.#endWaits(submission.submissionId);
      },
      expired: ({ submission }) => this.#endWaits(submission.submissionId),
    };
    const listener = combineListeners([internal, ...(deps.listeners ?? [])]);
    for (const [upstream, limits] of settings.schedulers) {
      const policy = settings.policy(upstream);
      const scheduler = new Scheduler({ settings: limits, policy, random });
      const { recheck } = settings;
      const loop = { upstream, scheduler, ledger, engine, clock, recheck, listener };
      this.#loops.set(upstream, new PollLoop(loop));
      this.#recent.set(upstream, new RecentActivity());
    }
  }

  /** Continues with everything that the ledger has open. */
  start(): void {
    for (const loop of this.#loops.values()) loop.start();
  }

  /**
   * Sends no more polls, waits up to `limitMs` for results in flight and commits them.
   * `waitUntilFinal` resolves immediately.
   */
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
    this.#recent.get(upstream)?.addHead(head);
    loop.scheduler.observeHead(head, loop.now());
    loop.wake();
  }

  hasUpstream(name: string): boolean {
    return this.#loops.has(name);
  }

  /**
   * Commits the requests, all or none, then starts to poll. Throws if the ledger cannot be written.
   * See WatcherLedger.
   */
  track(requests: readonly TrackRequest[]): TrackResult {
    return this.trackGroups([requests])[0] as TrackResult;
  }

  /**
   * Returns why `track` would refuse these requests; undefined if it would accept them. Stores
   * nothing.
   */
  refusalOf(requests: readonly TrackRequest[]): TrackRefusal | undefined {
    return this.#ledger.refusalOf(requests, this.#clock.now());
  }

  /**
   * Like `track` for several groups in one commit; each group is accepted or refused independently.
   */
  trackGroups(groups: readonly (readonly TrackRequest[])[]): TrackResult[] {
    const now = this.#clock.now();
    const results = this.#writing(() => this.#ledger.trackGroups(groups, now));
    this.#register(results, now);
    return results;
  }

  #register(results: readonly TrackResult[], now: number): void {
    const changed = new Set<PollLoop>();
    for (const result of results) {
      if (result.kind !== 'tracked') continue;
      for (const { submission, effect } of result.submissions) {
        const { submissionId, upstream, trackedAt } = submission;
        const loop = this.#loops.get(upstream);
        if ((effect !== 'accepted' && effect !== 'retracked') || !loop) continue;
        loop.add({ submissionId, trackedAt, seen: false }, now, {
          isRetracked: effect === 'retracked',
        });
        loop.addDeadline(submission);
        changed.add(loop);
      }
    }
    for (const loop of changed) loop.wake();
  }

  /**
   * Cancels submissions in one commit and stops polling them; final submissions are unchanged.
   * Undefined in the result: the id was never tracked. With an actor, each cancellation is audited.
   * Throws if the ledger cannot be written.
   */
  cancel(submissionIds: readonly string[], actor?: Actor): (Submission | undefined)[] {
    const now = this.#clock.now();
    const submissions = this.#writing(() => this.#ledger.cancel(submissionIds, now, actor));
    for (const submission of submissions) {
      if (!submission) continue;
      const { submissionId, upstream, watched } = submission;
      // A finalized submission that awaits its recheck stays watched.
      if (!watched) this.#loops.get(upstream)?.scheduler.remove(submissionId, now);
      this.#endWaits(submissionId);
    }
    return submissions;
  }

  /**
   * Changes options of a submission; undefined: the id was never tracked. With an actor, a change
   * is audited. Throws if the ledger cannot be written.
   */
  update(submissionId: string, patch: OptionsPatch, actor?: Actor): UpdateResult | undefined {
    const result = this.#writing(() =>
      this.#ledger.update(submissionId, patch, this.#clock.now(), actor),
    );
    if (result?.kind === 'updated' && result.changed.includes('deadline')) {
      const loop = this.#loops.get(result.submission.upstream);
      loop?.addDeadline(result.submission);
      loop?.wake();
    }
    return result;
  }

  /** Polls one submission on demand; see PollLoop.pollOnDemand. */
  pollOnDemand(upstream: string, submissionId: string): Promise<OnDemandResult> {
    const loop = this.#loops.get(upstream);
    return loop
      ? loop.pollOnDemand(submissionId)
      : Promise.resolve({ kind: 'failed', reason: 'upstream_down', retryAfterMs: 0 });
  }

  /**
   * Polls the submission at once if it has not been polled yet. Resolves when it is final, the time
   * is over, the watcher stops, or `signal` aborts.
   * `current` reads the submission now, so that a submission that becomes final meanwhile is not
   * missed.
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

  /** Returns the newest polls of a submission since the start of the process, oldest first. */
  recentPolls({ upstream, submissionId }: Submission): RecentPoll[] {
    return this.#recent.get(upstream)?.pollsOf(submissionId, MAX_POLLS_OF_ONE) ?? [];
  }

  /** Returns the polls and the heads of an upstream since `at`, oldest first. */
  recentActivity(upstream: string, at: number): { polls: RecentPoll[]; heads: FinalizedHead[] } {
    return this.#recent.get(upstream)?.since(at) ?? { polls: [], heads: [] };
  }

  /** Returns when a submission is polled next, at the earliest; null: it is not polled. */
  nextPollAt(submission: Submission): number | null {
    const { submissionId, upstream, watched, status, deadlineAt } = submission;
    const scheduler = this.#loops.get(upstream)?.scheduler;
    const scheduled = watched && scheduler?.find(submissionId);
    if (!scheduler || !scheduled) return null;
    const lastAt = isFinal(status) ? Number.POSITIVE_INFINITY : deadlineAt;
    const dueAt = this.#clock.now() < lastAt ? Math.min(scheduled.dueAt, lastAt) : scheduled.dueAt;
    return Math.max(dueAt, scheduler.closedUntil);
  }

  health(): { ledgerWritable: boolean; upstreams: UpstreamSummary[] } {
    const loops = [...this.#loops];
    return {
      ledgerWritable: this.#isWritable() && loops.every(([, loop]) => !loop.isLedgerFailing),
      upstreams: loops.map(([upstream, loop]) => healthOf(upstream, loop)),
    };
  }

  /**
   * Returns the upstreams that are not polled: before the start, after the stop, and if a poll is a
   * minute overdue.
   */
  notPolling(): string[] {
    const overdue = this.#clock.now() - OVERDUE_MS;
    const isPolled = (loop: PollLoop) =>
      loop.isRunning && (loop.isLedgerFailing || loop.scheduler.wakeAt() > overdue);
    return [...this.#loops].filter(([, loop]) => !isPolled(loop)).map(([upstream]) => upstream);
  }

  /** The state of each upstream's pacing, and the reason for its next poll. */
  pacing(): UpstreamPacing[] {
    const now = this.#clock.now();
    return [...this.#loops].map(([upstream, loop]) => ({
      ...healthOf(upstream, loop),
      ...loop.scheduler.outlook(now),
    }));
  }

  #writing<T>(work: () => T): T {
    try {
      const result = work();
      this.#isLedgerFailing = false;
      return result;
    } catch (error) {
      this.#isLedgerFailing ||= error instanceof LedgerUnavailableError;
      throw error;
    }
  }

  /** After a failed write, tries one: clients wait for this result before they write again. */
  #isWritable(): boolean {
    if (!this.#isLedgerFailing) return true;
    try {
      this.#writing(() => this.#ledger.probe(this.#clock.now()));
    } catch {}
    return !this.#isLedgerFailing;
  }
}

function healthOf(upstream: string, { scheduler }: PollLoop): UpstreamSummary {
  const { health, size, inFlight } = scheduler;
  const isProbing = health.state === BreakerState.down && inFlight > 0;
  return {
    upstream,
    state: isProbing ? 'probing' : health.state,
    reason: health.isUp ? null : health.reason,
    tracked: size,
    inFlight,
  };
}
