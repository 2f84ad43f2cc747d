import { verifyPermissions } from './permissions.ts';
import {
  disconnect,
  isCredentialRefusal,
  openRedis,
  type RedisSettings,
  waitUntilReady,
} from './redis.ts';

/** Recommended by BullMQ. */
export const NEEDED_REDIS_VERSION = '6.2.0';
/** With any other policy a full Redis may evict pending jobs. */
export const SAFE_EVICTION_POLICY = 'noeviction';

export type RedisInfo = ReturnType<typeof readRedisInfo>;

/**
 * Returns whether a reply of INFO comes from a node of a cluster. Dragonfly emulates one in a
 * single process.
 */
export function isCluster(info: string): boolean {
  return /^redis_mode:cluster\b/m.test(info) && !/^dragonfly_version:/m.test(info);
}

/** Returns the relevant fields of INFO; null if missing. */
export function readRedisInfo(info: string) {
  const field = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? null;
  const version = field('redis_version');
  // Valkey and Dragonfly have their own version numbers.
  const isCompatible = field('valkey_version') !== null || field('dragonfly_version') !== null;
  const appendOnly = field('aof_enabled');
  return {
    version,
    isTooOld: version !== null && !isCompatible && isOlder(version, NEEDED_REDIS_VERSION),
    evictionPolicy: field('maxmemory_policy'),
    /** Whether its append-only file is on. */
    isAppendOnly: appendOnly === null ? null : appendOnly === '1',
    role: field('role'),
    isCluster: isCluster(info),
    /** Number of connected replicas; 0 if missing. */
    replicas: Number(field('connected_slaves') ?? 0),
  };
}

export function isOlder(version: string, than: string): boolean {
  return version.localeCompare(than, 'en', { numeric: true }) < 0;
}

export type RedisInspection =
  | { kind: 'seen'; info: RedisInfo }
  /**
   * `refused`: the credentials or permissions. `detail`: the message of Redis or of the network.
   */
  | { kind: 'disconnected'; reason: 'unreachable' | 'refused'; detail: string };

/**
 * Connects to a Redis as the user of a server, reads its INFO and verifies the permissions. Never
 * rejects.
 */
export async function inspectRedis(
  settings: RedisSettings,
  limitMs: number,
): Promise<RedisInspection> {
  const redis = openRedis(settings);
  try {
    await waitUntilReady(redis, limitMs);
    const info = readRedisInfo(await redis.info());
    await verifyPermissions(redis, settings.prefix, 'server');
    return { kind: 'seen', info };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const isLate = error instanceof Error && error.name === 'AbortError';
    const detail = isLate ? `no response within ${limitMs / 1_000} s` : message;
    return {
      kind: 'disconnected',
      reason: isCredentialRefusal(message) ? 'refused' : 'unreachable',
      detail,
    };
  } finally {
    disconnect(redis);
  }
}
