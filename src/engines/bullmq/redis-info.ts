/** BullMQ's own recommendation. */
export const NEEDED_REDIS_VERSION = '6.2.0';
/** Any other may drop keys of a full Redis, and with them jobs that nobody has done. */
export const SAFE_EVICTION_POLICY = 'noeviction';

/** What INFO says of a Redis that is about us; null: it does not say. */
export type RedisInfo = {
  version: string | null;
  isTooOld: boolean;
  evictionPolicy: string | null;
  /** Whether its append-only file is on. */
  isAppendOnly: boolean | null;
  role: string | null;
};

export function readRedisInfo(info: string): RedisInfo {
  const field = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? null;
  const version = field('redis_version');
  // These count their versions otherwise.
  const isCompatible = field('valkey_version') !== null || field('dragonfly_version') !== null;
  const appendOnly = field('aof_enabled');
  return {
    version,
    isTooOld: version !== null && !isCompatible && isOlder(version, NEEDED_REDIS_VERSION),
    evictionPolicy: field('maxmemory_policy'),
    isAppendOnly: appendOnly === null ? null : appendOnly === '1',
    role: field('role'),
  };
}

export function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number));
  for (let index = 0; index < 3; index++) {
    const difference = (a?.[index] ?? 0) - (b?.[index] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
