import { escapeText } from '../lib/text.ts';
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
  probe,
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
  const redis = openRedis(settings);
  try {
    await waitUntilReady(redis, limitMs);
    return judge(await redis.info(), await probe(redis).catch((error: Error) => error));
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'AbortError';
    const message = error instanceof Error ? error.message : String(error);
    const detail = isLate ? `no response within ${limitMs / 1_000} s` : escapeText(message, 200);
    return [
      problem(
        'redis',
        `it is not usable: ${detail}`,
        `verify that it runs, ${SETTING}, and the permissions of the user; until then the server polls by itself`,
      ),
    ];
  } finally {
    disconnect(redis);
  }
}

/** `work`: the names of the paused queues; an error if Redis refuses what the server does. */
function judge(info: string, work: string[] | Error): Finding[] {
  // Dragonfly emulates a cluster in a single process.
  const isDragonfly = fieldOf(info, 'dragonfly_version') !== null;
  if (fieldOf(info, 'redis_mode') === 'cluster' && !isDragonfly)
    return [
      problem(
        'redis',
        'it is a cluster, which dawatch does not support',
        'use a single Redis, or a primary with replicas',
      ),
    ];
  const version = fieldOf(info, 'redis_version');
  const evictionPolicy = fieldOf(info, 'maxmemory_policy') ?? SAFE_EVICTION_POLICY;
  return reported(
    ok('redis', version === null ? 'it responds' : `it responds, version ${version}`),
    work instanceof Error &&
      problem(
        'redis.writes',
        `it refuses what the server does: ${escapeText(work.message, 200)}`,
        `correct what it names; for READONLY, set ${SETTING} to the primary`,
      ),
    Array.isArray(work) &&
      work.length > 0 &&
      problem(
        'redis.queues',
        `paused: ${work.join(', ')}`,
        'resume them where they were paused, such as a board for BullMQ; their jobs wait',
      ),
    fieldOf(info, 'aof_enabled') === '0' &&
      warning(
        'redis.persistence',
        'the append-only file is disabled: a restart loses enqueued submissions that were not yet accepted',
        'set appendonly to yes',
      ),
    evictionPolicy !== SAFE_EVICTION_POLICY &&
      warning(
        'redis.eviction',
        `it evicts pending jobs when its memory is full (${evictionPolicy})`,
        `set maxmemory-policy to ${SAFE_EVICTION_POLICY}`,
      ),
  );
}

/** With any other policy a full Redis may evict pending jobs. */
const SAFE_EVICTION_POLICY = 'noeviction';
