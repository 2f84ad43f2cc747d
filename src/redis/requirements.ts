import { type Redis, ReplyError } from 'ioredis';
import { POLLS_QUEUE } from './messages.ts';

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

/** The ACL user of a process. */
export type RedisUser = 'server' | 'worker';

/**
 * Commands by the number of their arguments; the verification passes keys for all of them. Most
 * commands run in the scripts of BullMQ.
 */
const WORKER = {
  1: 'del exists get hgetall incr llen pttl scard smembers zcard zpopmin',
  2: 'bzpopmin hdel hexists hget hmget lpush pexpire rpoplpush rpush sadd set srandmember srem zrem zscore',
  3: 'getrange hincrby hmset hset lrange lrem ltrim xtrim zadd zrange zrangebyscore zremrangebyrank zremrangebyscore zrevrange zrevrangebyscore',
  4: 'xadd',
};

/**
 * In addition, for the queues of producers and consumers, and for the results of polls.
 */
const SERVER = {
  1: 'hlen lpop persist rpop type',
  2: 'lindex lpos rename sismember',
  3: 'lset xread zcount',
};

/** A call of a command. The key is its last argument. */
type Sample = [command: string, ...args: string[]];

/** The ACL user lacks permissions. The message names them. */
class RedisPermissionError extends Error {
  override readonly name = 'RedisPermissionError';
}

/** Returns the names of the commands that the user needs, as in ACL SETUSER, sorted. */
export function neededCommands(user: RedisUser): string[] {
  return [...samplesOf(user, '').map(nameOf), 'multi', 'exec', 'discard'].sort();
}

/**
 * Verifies that the user may run every command that its process needs. Without this check, a
 * missing permission would appear only when a script needs it. Queues the commands in a transaction
 * and discards it, so nothing changes. Throws a RedisPermissionError, or the errors of the
 * connection.
 */
export async function verifyPermissions(
  redis: Redis,
  prefix: string,
  user: RedisUser,
): Promise<void> {
  // Without a transaction, the commands would be executed.
  let denied = await findDenied(redis, [['multi'], ['exec'], ['discard']]);
  if (denied.length === 0) {
    const samples = samplesOf(user, `${prefix}:${POLLS_QUEUE}:permissions`);
    const keys = KEYS[user].map((name): Sample => ['get', `${prefix}:${name}`]);
    denied = await findDenied(redis, [['multi'], ...samples, ...keys, ['discard']]);
  }
  if (denied.length > 0)
    throw new RedisPermissionError(`NOPERM the ACL user lacks permissions: ${denied.join(' ')}`);
}

/** Returns the missing permissions, as in ACL SETUSER, sorted. */
async function findDenied(redis: Redis, samples: readonly Sample[]): Promise<string[]> {
  // Sent without a pause: a command of another caller must not become part of the transaction.
  const replies = await Promise.allSettled(
    samples.map(([command, ...args]) => redis.call(command, ...args)),
  );
  const denied = replies.flatMap((reply, index) => {
    const sample = samples[index];
    if (reply.status === 'fulfilled' || !sample) return [];
    if (!(reply.reason instanceof ReplyError)) throw reply.reason;
    const message = String(reply.reason.message);
    if (!message.includes('NOPERM')) return [];
    return /\bkeys?\b/.test(message) ? `~${sample.at(-1)}` : `+${nameOf(sample)}`;
  });
  return [...new Set(denied)].sort();
}

/** One key of each pattern, apart from the queue of polls. */
const KEYS = {
  server: ['dawatch-workers:names', 'dawatch-submissions:meta', 'dawatch-events:meta'],
  worker: [
    'dawatch-workers:names',
    'dawatch-workers:names:worker',
    'dawatch-workers:fencing-token',
  ],
} as const satisfies Record<RedisUser, readonly string[]>;

/** Returns one call of each command. */
function samplesOf(user: RedisUser, key: string): Sample[] {
  const scripts: Sample[] = [
    ['eval', 'return 1', '1', key],
    ['evalsha', '0', '1', key],
  ];
  const common: Sample[] = [
    ...withKey(WORKER, key),
    ...scripts,
    ['info'],
    ['time'],
    ['client', 'setname', user],
  ];
  return user === 'worker'
    ? common
    : [...common, ...withKey(SERVER, key), ['scan', '0'], ['wait', '1', '1']];
}

function withKey(lists: Record<number, string>, key: string): Sample[] {
  return Object.entries(lists).flatMap(([count, names]) =>
    names.split(' ').map((name): Sample => [name, ...Array<string>(Number(count)).fill(key)]),
  );
}

function nameOf([command, subcommand]: Sample): string {
  return command === 'client' ? `${command}|${subcommand}` : command;
}
