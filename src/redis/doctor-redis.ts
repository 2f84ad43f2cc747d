import { isLoopback } from '../lib/addresses.ts';
import { escapeText } from '../lib/text.ts';
import type { Config } from '../operations/config/schema.ts';
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
  isCredentialRefusal,
  openRedis,
  problemOfTls,
  type RedisInfo,
  type RedisSettings,
  readRedisInfo,
  SAFE_EVICTION_POLICY,
  waitUntilReady,
  withoutBrackets,
} from './redis.ts';

const SETTING = settingName('redis.url');

/** Returns the check of the configured Redis; undefined if none is configured. */
export function redisCheck({ redis }: Config, limitMs: number) {
  const { url } = redis;
  if (url === undefined) return undefined;
  return { name: 'redis', run: () => checkRedis({ ...redis, url }, limitMs) };
}

export async function checkRedis(
  redis: RedisSettings & { secret?: string | undefined },
  limitMs: number,
): Promise<Finding[]> {
  const unusable = problemOfTls(redis);
  if (unusable !== undefined)
    return [problem('redis', unusable, 'correct the file, or the setting that names it')];
  const { url, secret } = redis;
  const look = await inspectRedis(redis, limitMs);
  if (look.kind === 'seen' && look.info.isCluster)
    return [
      problem(
        'redis',
        'it is a cluster, which dawatch does not support',
        'use a single Redis, or a primary with replicas and Sentinels (docs/scaling.md)',
      ),
    ];
  if (look.kind === 'seen') return [...judge(look.info), ...checkSecret(url, secret)];
  const [message, action] =
    look.reason === 'refused'
      ? [
          'it refuses the credentials',
          `verify the user and the password in ${SETTING}, and the permissions of the user (docs/queues.md)`,
        ]
      : [
          'it is unreachable',
          `verify that it runs, and verify ${SETTING}; until then the server polls by itself`,
        ];
  return [problem('redis', `${message}: ${escapeText(look.detail, 200)}`, action)];
}

/** Warns of unsigned jobs unless Redis is on this machine, where only local users can reach it. */
function checkSecret(url: string, secret: string | undefined): Finding[] {
  if (secret !== undefined) return [ok('redis.secret', 'jobs and results are signed')];
  const host = withoutBrackets(URL.parse(url)?.hostname ?? '');
  if (host === '' || isLoopback(host)) return [];
  return [
    warning(
      'redis.secret',
      'jobs and results are not signed, so every client with write access to Redis can forge results',
      `set the same ${settingName('redis.secret')} on the server and on every worker`,
    ),
  ];
}

function judge({ version, evictionPolicy, isAppendOnly, role }: RedisInfo): Finding[] {
  const losesJobs =
    'the append-only file is disabled: a restart loses enqueued submissions that were not yet accepted';
  const evicts = `it evicts pending jobs when its memory is full (${evictionPolicy})`;
  const isSafe = evictionPolicy === SAFE_EVICTION_POLICY;
  return reported(
    ok('redis', version === null ? 'it responds' : `it responds, version ${version}`),
    role === 'slave' &&
      problem('redis.role', 'it is a read-only replica', `set ${SETTING} to the primary`),
    isAppendOnly === true && ok('redis.persistence', 'the append-only file is enabled'),
    isAppendOnly === false && warning('redis.persistence', losesJobs, 'set appendonly to yes'),
    isSafe && ok('redis.eviction', 'it evicts nothing when its memory is full'),
    evictionPolicy !== null &&
      !isSafe &&
      warning('redis.eviction', evicts, `set maxmemory-policy to ${SAFE_EVICTION_POLICY}`),
  );
}

type RedisInspection =
  | { kind: 'seen'; info: RedisInfo }
  /**
   * `refused`: the credentials or permissions. `detail`: the message of Redis or of the network.
   */
  | { kind: 'disconnected'; reason: 'unreachable' | 'refused'; detail: string };

/**
 * Connects to a Redis as the user of a server, and reads its INFO. Never rejects.
 */
async function inspectRedis(settings: RedisSettings, limitMs: number): Promise<RedisInspection> {
  const redis = openRedis(settings);
  try {
    await waitUntilReady(redis, limitMs);
    return { kind: 'seen', info: readRedisInfo(await redis.info()) };
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
