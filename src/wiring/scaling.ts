import type { Clock } from '../lib/clock.ts';
import type { RedisHealth } from '../operations/health-routes.ts';
import type { Log } from '../operations/logging/logger.ts';
import type { Counters } from '../operations/metrics/counters.ts';
import { BullmqEngine, logPolls, REJECTIONS } from '../redis/engine.ts';
import { Intake, logIntake } from '../redis/intake.ts';
import { createMessageSigner } from '../redis/messages.ts';
import { logRedis, RedisLink, untilPreviousPollsEnded } from '../redis/redis-link.ts';
import type { PollEngine } from '../submissions/ports.ts';
import type { Tracker } from '../submissions/tracker.ts';
import type { Ledger } from './ledger-stores.ts';
import type { ConfiguredRedis } from './redis.ts';
import { leaseMsOf, timeoutMsOf, type UsableUpstream } from './upstreams.ts';

/** Starts the parts of a server that exist only with Redis. */
export function startScaling(deps: {
  redis: ConfiguredRedis;
  upstreams: readonly [string, UsableUpstream][];
  ledger: Ledger;
  local: PollEngine;
  clock: Clock;
  log: Log;
  counters: Counters;
}) {
  const { redis, upstreams, ledger, local, clock, log, counters } = deps;
  const signer = createMessageSigner(redis);
  const link = new RedisLink({ redis, signer, clock, onEvent: logRedis(log) });
  const usable = new Map(upstreams);
  const of = (name: string, measure: (upstream: UsableUpstream) => number) => {
    const upstream = usable.get(name);
    if (!upstream) throw new Error(`no upstream is named ${name}`);
    return measure(upstream);
  };
  const logged = logPolls(log);
  for (const reason of REJECTIONS) counters.resultsRejected(reason, 0);
  const engine = new BullmqEngine({
    redis,
    link,
    signer,
    local,
    clock,
    leaseMsOf: (name) => of(name, leaseMsOf),
    timeoutMsOf: (name) => of(name, timeoutMsOf),
    onEvent: (event) => {
      if (event.kind === 'rejected') counters.resultsRejected(event.reason);
      logged(event);
    },
  });
  const now = clock.now();
  const leasesLastMs = upstreams.map(([name, upstream]) => {
    const { pollingUntil } = ledger.upstream(name);
    return pollingUntil === null ? 0 : Math.min(pollingUntil, now) + leaseMsOf(upstream) - now;
  });
  const longestMs = Math.max(0, ...leasesLastMs);
  if (longestMs > 0) log.info({ max_delay_ms: longestMs }, 'polls.startup_delayed');
  const closing = new AbortController();
  return {
    engine,
    /**
     * The engine must not poll before this resolves: workers may still poll for the previous
     * process of this server. Also resolves on close.
     */
    previousPollsEnded: untilPreviousPollsEnded({
      queue: engine.queue,
      link,
      clock,
      leasesLastMs: longestMs,
      timeoutMs: Math.max(...upstreams.map(([, upstream]) => timeoutMsOf(upstream))),
      signal: closing.signal,
    }),
    health: (): RedisHealth => link.health,
    startIntake: (intake: { track: Tracker['trackInParts']; whenDurable: Ledger['whenDurable'] }) =>
      new Intake({ redis, ...intake, ...logIntake(log) }),
    async close() {
      closing.abort();
      await engine.close();
      await link.close();
    },
  };
}
