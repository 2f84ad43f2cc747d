import type { Clock } from '../lib/clock.ts';
import type { Config } from '../operations/config/schema.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { RedisHealth } from '../operations/health-routes.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { Counters } from '../operations/metrics/counters.ts';
import { leaseMsOf, timeoutMsOf, type UsableUpstream } from '../polling/upstreams.ts';
import type { PollEngine } from '../submissions/ports.ts';
import type { TrackBody } from '../submissions/track-request.ts';
import type { TrackRequestResult } from '../submissions/tracker.ts';
import { BullmqEngine, logPolls, REJECTIONS } from './engine.ts';
import { createQueueChannel, EVENTS_QUEUE } from './events-queue.ts';
import { Intake, logIntake } from './intake.ts';
import { MessageSigner } from './messages.ts';
import { redisOf } from './redis.ts';
import { logRedis, RedisLink, untilPreviousPollsEnded } from './redis-link.ts';

export type RedisServer = {
  config: Config;
  upstreams: { named: readonly [string, UsableUpstream][] };
  ledger: {
    upstream(name: string): { pollingUntil: number | null };
  };
  /** Polls from this process. */
  local: PollEngine;
  clock: Clock;
  log: Log;
  counters: Counters;
};

/**
 * Opens the parts of a server that exist only with Redis: polls through workers, the queue of
 * producers and the queue of events. Throws StartError.
 */
export function openQueues({
  config,
  upstreams,
  local,
  clock,
  log,
  counters,
  ledger,
}: RedisServer) {
  const redis = redisOf(config);
  if (!redis) throw new StartError('redis.url is not set');
  const signer = new MessageSigner(redis.secret);
  const link = new RedisLink({ redis, signer, clock, onEvent: logRedis(log) });
  const usable = new Map(upstreams.named);
  const measureOf = (name: string, measure: (upstream: UsableUpstream) => number) => {
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
    leaseMsOf: (name) => measureOf(name, leaseMsOf),
    timeoutMsOf: (name) => measureOf(name, timeoutMsOf),
    onEvent: (event) => {
      if (event.kind === 'rejected') counters.resultsRejected(event.reason);
      logged(event);
    },
  });
  const now = clock.now();
  const leasesLastMs = upstreams.named.map(([name, upstream]) => {
    const { pollingUntil } = ledger.upstream(name);
    return pollingUntil === null ? 0 : Math.min(pollingUntil, now) + leaseMsOf(upstream) - now;
  });
  const longestMs = Math.max(0, ...leasesLastMs);
  if (longestMs > 0) log.info({ max_delay_ms: longestMs }, 'polls.startup_delayed');
  const closing = new AbortController();
  let intake: Intake | undefined;
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
      timeoutMs: Math.max(...upstreams.named.map(([, upstream]) => timeoutMsOf(upstream))),
      signal: closing.signal,
    }),
    queueChannel: {
      channel: createQueueChannel(redis),
      address: `${redis.prefix}:${EVENTS_QUEUE}`,
    },
    redisHealth: (): RedisHealth => link.health,
    start({ track }: { track: (body: TrackBody) => Promise<TrackRequestResult> }): void {
      intake = new Intake({ redis, track, ...logIntake(log) });
    },
    stop: (leftMs: number) => intake?.close(leftMs),
    async close(): Promise<void> {
      closing.abort();
      await engine.close();
      await link.close();
    },
  };
}
