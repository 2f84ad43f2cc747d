import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { HttpResult } from '../../../src/lib/http-call.ts';
import type { PolicyFactory } from '../../../src/pacing/index.ts';
import { chainEngine } from '../../../src/polling/chain/chains.ts';
import type { Chain, ChainSettings } from '../../../src/polling/chain/port.ts';
import { VerificationQueue } from '../../../src/polling/chain/verification-queue.ts';
import type { WatcherListener } from '../../../src/polling/listeners.ts';
import { createLocalEngine } from '../../../src/polling/poll-engine.ts';
import type { SchedulerSettings } from '../../../src/polling/scheduler.ts';
import { Watcher, type WatcherSettings } from '../../../src/polling/watcher.ts';
import { classify } from '../../../src/submissions/classify.ts';
import type { OptionsPatch } from '../../../src/submissions/option-changes.ts';
import type { TrackResult } from '../../../src/submissions/store-results.ts';
import type { Submission, TrackRequest } from '../../../src/submissions/submission.ts';
import type { UpstreamChange } from '../../../src/submissions/upstream.ts';
import { stubChain } from '../chain/stub-chain.ts';
import { historyOf } from '../ledger/domain.ts';
import { createLedger, Ledger } from '../ledger/ledger-file.ts';
import { tempFolder } from '../temp-folder.ts';
import { byAge } from './pacing.ts';
import { createVirtualClock } from './virtual-clock.ts';

export const START_MS = 1_760_000_000_000;
export const MINUTE_MS = 60_000;

const SCHEDULER_SETTINGS: SchedulerSettings = {
  budget: { requests: 50, perMs: 1_000, concurrency: 32 },
  breaker: { failures: 5, probeMs: 1_000, maxProbeMs: 30_000 },
  leaseMs: 30_000,
  recheckMs: MINUTE_MS,
};

type World = {
  /** The response of the upstream; a pending promise for one that hangs. */
  respond: (submissionId: string) => HttpResult | Promise<HttpResult>;
  scheduler?: Partial<SchedulerSettings>;
  recheck?: boolean;
  /** Knows when the blocks of the upstream became final. */
  chain?: Pick<Chain, 'finalizedAt'>;
  /** Verifies finalized submissions. The settings may change before a restart. */
  verification?: { chain: Chain; settings: ChainSettings };
  policy?: PolicyFactory;
  listener?: WatcherListener;
  /** Called after `listener`. */
  listeners?: readonly WatcherListener[];
  file?: string;
};

/**
 * A real watcher over a real ledger file, in virtual time, with an upstream that the test controls.
 */
export function openWatcher(world: World) {
  const clock = createVirtualClock(START_MS);
  const file = world.file ?? join(tempFolder(), 'ledger.db');
  const polls: { submissionId: string; at: number }[] = [];
  const turns: UpstreamChange[] = [];
  const local = createLocalEngine({
    clock,
    sendPoll: async (_upstream, submissionId) => {
      polls.push({ submissionId, at: clock.now() });
      return classify(submissionId, await world.respond(submissionId));
    },
  });
  const settings: WatcherSettings = {
    schedulers: new Map([['default', { ...SCHEDULER_SETTINGS, ...world.scheduler }]]),
    policy: () => world.policy ?? byAge,
    recheck: world.recheck ?? false,
  };
  const noting = { upstream: (change: UpstreamChange) => turns.push(change), ...world.listener };
  const listeners = [noting, ...(world.listeners ?? [])];

  const verification = world.verification ?? {
    chain: { ...stubChain(async () => null, []).chain, ...world.chain },
    settings: { urls: [], verify: 'off' as const, verify_data: false },
  };

  let process = startProcess();
  onTestFinished(() => process.kill());

  function startProcess() {
    let alive = true;
    createLedger(file);
    const ledger = new Ledger({ file, now: clock.now() });
    // The timers of a killed process never fire.
    const own = {
      ...clock,
      after: (ms: number, run: () => void) => clock.after(ms, () => alive && run()),
    };
    const { chain, settings: chainSettings } = verification;
    const queue = new VerificationQueue({
      ...{ upstream: 'default', chain, settings: chainSettings, clock: own },
      submissions: ledger.submissions,
      record: (upstream, verdicts) => monitor.recordVerdicts(upstream, verdicts),
      poll: (upstream, id) => void monitor.pollOnDemand(upstream, id),
    });
    const engine = chainEngine(local, (_upstream, observation) => queue.observe(observation));
    const monitor: Watcher = new Watcher({
      settings,
      ledger,
      engine,
      clock: own,
      random: () => 0.5,
      listeners,
    });
    monitor.start();
    if (world.verification) queue.start();
    const kill = () => {
      alive = false;
      queue.stop();
      ledger.close();
    };
    return { ledger, monitor, kill };
  }

  return {
    clock,
    file,
    polls,
    turns,
    get ledger() {
      return process.ledger;
    },
    get monitor() {
      return process.monitor;
    },
    track(ids: readonly string[], limits: Partial<TrackRequest> = {}): TrackResult {
      const now = clock.now();
      const defaults = {
        deadlineAt: now + 24 * 60 * MINUTE_MS,
        graceEndsAt: now + 15 * MINUTE_MS,
        stuckAt: now + 10 * MINUTE_MS,
      };
      return this.trackAll(
        ids.map((submissionId) => ({
          submissionId,
          upstream: 'default',
          metadata: null,
          callbackUrl: null,
          ...defaults,
          ...limits,
        })),
      );
    },
    trackAll: (requests: readonly TrackRequest[]) => process.ledger.track(requests, clock.now()),
    cancel: (ids: readonly string[]) => process.ledger.cancel(ids, clock.now()),
    update: (id: string, patch: OptionsPatch) => process.ledger.update(id, patch, clock.now()),
    get(submissionId: string): Submission {
      const submission = process.ledger.submissions.get(submissionId);
      if (!submission) throw new Error(`${submissionId} is not in the ledger`);
      return submission;
    },
    /** Changes the ledger while no watcher runs, and starts one. */
    restartWith(change: (ledger: Ledger) => void): void {
      process.kill();
      const ledger = new Ledger({ file, now: clock.now() });
      change(ledger);
      ledger.close();
      process = startProcess();
    },
    /** Simulates a kill: the memory is lost, and the file stays. */
    restart(): void {
      process.kill();
      process = startProcess();
    },
    /** Kills the watcher, and starts it again after the given time. */
    async isDownFor(ms: number): Promise<void> {
      process.kill();
      await clock.advance(ms);
      process = startProcess();
    },
    statuses: (submissionId: string) =>
      historyOf(process.ledger, submissionId).map(({ status }) => status),
  };
}

export function response(
  httpStatus: number,
  body: unknown,
  headers: { retryAfter?: string } = {},
): HttpResult {
  return {
    kind: 'response',
    httpStatus,
    retryAfter: headers.retryAfter ?? null,
    date: new Date(START_MS).toUTCString(),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

export const data = {
  block_hash: '0xabc',
  block_number: 7,
  tx_hash: '0xdef',
  fees: '1'.repeat(39),
  created_at: '2026-01-01T00:00:00',
};
export const finalized = response(200, { state: 'Finalized', error: null, data });
export const pending = response(200, {
  state: 'Pending',
  error: null,
  data: { ...data, block_hash: null, block_number: null },
});
export const notFound = response(404, { error: 'not found' });
export const recordNotFound = response(500, { error: 'Record not found' });
export const databaseDown = response(500, { state: 'ERROR', error: 'Database connection error' });
export const unauthorized = response(401, 'Invalid API key');
