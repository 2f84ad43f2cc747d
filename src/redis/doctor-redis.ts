import type { Redis } from 'ioredis';
import { escapeText } from '../lib/text.ts';
import { StartError } from '../operations/config/start-error.ts';
import {
  type Finding,
  ok,
  problem,
  reported,
  settingName,
  warning,
} from '../operations/doctor/finding.ts';
import {
  disconnect,
  fieldOf,
  openRedis,
  type RedisSettings,
  waitUntilReady,
} from './connections.ts';
import type { RedisConfig } from './settings.ts';

const SETTING = settingName('redis.url');

export function redisCheck({ redis }: { redis: RedisConfig }, limitMs: number) {
  const { url } = redis;
  if (url === undefined) return undefined;
  return { name: 'redis', run: () => checkRedis({ url }, limitMs) };
}

export async function checkRedis(settings: RedisSettings, limitMs: number): Promise<Finding[]> {
  let redis: Redis | undefined;
  try {
    redis = openRedis(settings);
    await waitUntilReady(redis, limitMs);
    return judge(await redis.info());
  } catch (error) {
    if (error instanceof StartError)
      return [problem('redis', error.message, 'correct the file, or the setting that names it')];
    const isLate = error instanceof Error && error.name === 'AbortError';
    const message = error instanceof Error ? error.message : String(error);
    const detail = isLate ? `no response within ${limitMs / 1_000} s` : escapeText(message, 200);
    return [
      problem(
        'redis',
        `it is not usable: ${detail}`,
        `verify that it runs, ${SETTING}, and the permissions of the user (docs/queues.md); until then the server polls by itself`,
      ),
    ];
  } finally {
    if (redis) disconnect(redis);
  }
}

/** With any other policy a full Redis may evict pending jobs. */
const SAFE_EVICTION_POLICY = 'noeviction';

function judge(info: string): Finding[] {
  // Dragonfly emulates a cluster in a single process.
  const isDragonfly = fieldOf(info, 'dragonfly_version') !== null;
  if (fieldOf(info, 'redis_mode') === 'cluster' && !isDragonfly)
    return [
      problem(
        'redis',
        'it is a cluster, which dawatch does not support',
        'use a single Redis, or a primary with replicas (docs/scaling.md)',
      ),
    ];
  const version = fieldOf(info, 'redis_version');
  const appendOnly = fieldOf(info, 'aof_enabled');
  const evictionPolicy = fieldOf(info, 'maxmemory_policy');
  const isSafe = evictionPolicy === SAFE_EVICTION_POLICY;
  return reported(
    ok('redis', version === null ? 'it responds' : `it responds, version ${version}`),
    fieldOf(info, 'role') === 'slave' &&
      problem('redis.role', 'it is a read-only replica', `set ${SETTING} to the primary`),
    appendOnly === '1' && ok('redis.persistence', 'the append-only file is enabled'),
    appendOnly === '0' &&
      warning(
        'redis.persistence',
        'the append-only file is disabled: a restart loses enqueued submissions that were not yet accepted',
        'set appendonly to yes',
      ),
    isSafe && ok('redis.eviction', 'it evicts nothing when its memory is full'),
    evictionPolicy !== null &&
      !isSafe &&
      warning(
        'redis.eviction',
        `it evicts pending jobs when its memory is full (${evictionPolicy})`,
        `set maxmemory-policy to ${SAFE_EVICTION_POLICY}`,
      ),
  );
}
