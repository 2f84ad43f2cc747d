import { QueueEvents } from 'bullmq';
import { type Clock, withTimeout } from '../lib/clock.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { PollEngine } from '../polling/poll-engine.ts';
import { leaseMsOf, type UsableUpstream } from '../polling/upstreams.ts';
import type { TrackRequestResult } from '../submissions/intake.ts';
import type { TrackBody } from '../submissions/track-request.ts';
import type { UpstreamStore } from '../submissions/upstream.ts';
import {
  disconnect,
  EVENTS_QUEUE,
  openLoopRedis,
  openRedis,
  POLLS_QUEUE,
  type RedisSettings,
} from './connections.ts';
import { BullmqEngine, untilPreviousPollsEnded } from './engine.ts';
import { createQueueChannel } from './events-queue.ts';
import { IntakeWorker } from './intake.ts';
import { openPollsQueue, RedisLink } from './polls-queue.ts';
import type { RedisConfig } from './settings.ts';

export type RedisServer = {
  config: { redis: RedisConfig };
  upstreams: { named: readonly [string, UsableUpstream][] };
  ledger: { upstreams: UpstreamStore };
  /** Polls from this process. */
  local: PollEngine;
  clock: Clock;
  log: Log;
};

/** Polls through workers, the queue of producers and the queue of events. Throws StartError. */
export function openQueues({ config, upstreams, local, clock, log, ledger }: RedisServer) {
  const { url } = config.redis;
  if (url === undefined) throw new StartError('redis.url is not set');
  const redis = { url };
  const leases = new Map(upstreams.named.map(([name, upstream]) => [name, leaseMsOf(upstream)]));
  const leaseMs = (name: string) => leases.get(name) ?? 0;
  const polls = openPolls({ redis, local, clock, log, leaseMsOf: leaseMs });
  const now = clock.now();
  const leasesLastMs = [...leases.keys()].map((name) => {
    const { pollingUntil } = ledger.upstreams.get(name);
    return pollingUntil === null ? 0 : Math.min(pollingUntil, now) + leaseMs(name) - now;
  });
  const longestMs = Math.max(0, ...leasesLastMs);
  if (longestMs > 0) log.info({ max_delay_ms: longestMs }, 'polls.startup_delayed');
  let intake: IntakeWorker | undefined;
  return {
    engine: polls.engine,
    /** The engine must not poll before this resolves. Also resolves on close. */
    previousPollsEnded: polls.untilPreviousEnded(longestMs),
    queueChannel: {
      channel: createQueueChannel(redis),
      address: EVENTS_QUEUE,
    },
    redisHealth: () => polls.link.health,
    start({
      track,
    }: {
      track: (body: TrackBody) => Promise<TrackRequestResult | undefined>;
    }): void {
      intake = new IntakeWorker({ redis, track, log });
    },
    stop: (leftMs: number) => intake?.close(leftMs),
    close: polls.close,
  };
}

const CLOSE_WITHIN_MS = 1_000;

/** Opens what a server needs to poll through workers. */
export function openPolls(deps: {
  redis: RedisSettings;
  local: PollEngine;
  clock: Clock;
  log: Log;
  leaseMsOf: (upstream: string) => number;
}) {
  const redis = openRedis(deps.redis);
  const loops = openLoopRedis(deps.redis);
  const queue = openPollsQueue(redis);
  const events = new QueueEvents(POLLS_QUEUE, {
    connection: loops.redis,
    skipVersionCheck: true,
  });
  events.on('error', () => undefined);
  redis.on('close', loops.reconnect);
  const link = new RedisLink({ ...deps, redis, queue });
  const engine = new BullmqEngine({ ...deps, redis, queue, events, link });
  const closing = new AbortController();
  return {
    engine,
    link,
    queue,
    untilPreviousEnded: (leasesLastMs: number) =>
      untilPreviousPollsEnded({ ...deps, queue, link, leasesLastMs, signal: closing.signal }),
    async close(): Promise<void> {
      closing.abort();
      await engine.close();
      link.close();
      await withTimeout(CLOSE_WITHIN_MS, Promise.all([events.close(), queue.close()]));
      loops.close();
      disconnect(redis);
    },
  };
}
