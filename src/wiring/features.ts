import { openAlerts } from '../alerts/feature.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { Clock } from '../lib/clock.ts';
import type { Channel } from '../notifications/channels/channel.ts';
import type { HttpPost } from '../notifications/transport/http-post.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { PollEngine } from '../polling/poll-engine.ts';
import type { Upstreams } from '../polling/upstreams.ts';
import { openRedisQueues } from '../redis/feature.ts';
import type { TrackRequestResult } from '../submissions/intake.ts';
import type { TrackBody } from '../submissions/track-request.ts';
import type { RedisHealth } from './health-routes.ts';
import type { Ledger } from './ledger-stores.ts';
import type { Counters } from './metrics/counters.ts';
import type { Polling } from './polling.ts';
import type { Config, Tuning } from './settings.ts';

/** What every feature may use. */
export type FeatureDeps = {
  config: Config;
  ledger: Ledger;
  upstreams: Upstreams;
  /** Polls from this process. */
  local: PollEngine;
  clock: Clock;
  log: Log;
  counters: Counters;
  /** The state of Redis, as the features know it. */
  redisHealth: () => RedisHealth | undefined;
  tuning: Tuning;
};

/** What a feature may use once the server listens. */
type Running = {
  /** Commits before it resolves. */
  track: (body: TrackBody) => Promise<TrackRequestResult | undefined>;
  /** Sends a GET request to an address of the operator. */
  get: HttpPost['get'];
  defect: () => string | undefined;
  isLedgerWritable: () => boolean;
  live: Polling['live'];
  polling: Promise<void>;
};

/** What a feature adds to the server. A server without the feature lacks only this. */
export type Feature = {
  engine?: PollEngine;
  previousPollsEnded?: Promise<void>;
  queueChannel?: { channel: Channel; address: string };
  redisHealth?: () => RedisHealth;
  /** Whether the feature's newest write to the ledger succeeded. */
  isLedgerWritable?: () => boolean;
  /** Adds routes for callers with a role, which each route names. */
  addReadRoutes?: (app: TypedServer) => void;
  addChangeRoutes?: (app: TypedServer) => void;
  /** Called when the server listens. */
  start?: (running: Running) => void;
  stop?: (leftMs: number) => unknown;
  /** Called when nothing uses the feature any more. */
  close?: () => Promise<void>;
};

/** In the order of opening. To remove one, delete its folder, its import and its entry. */
const FEATURES: readonly ((deps: FeatureDeps) => Feature | Promise<Feature>)[] = [
  openAlerts,
  openRedisQueues,
];

export async function openFeatures(
  deps: Omit<FeatureDeps, 'redisHealth'>,
): Promise<{ features: readonly Feature[] } & Pick<FeatureDeps, 'redisHealth'>> {
  const features: Feature[] = [];
  const redisHealth = () => features.find((one) => one.redisHealth)?.redisHealth?.();
  for (const open of FEATURES) features.push(await open({ ...deps, redisHealth }));
  return { features, redisHealth };
}
