import { escapeText } from '../domain/text.ts';
import {
  inspectRedis,
  NEEDED_REDIS_VERSION,
  type RedisInfo,
  SAFE_EVICTION_POLICY,
} from '../engines/bullmq/redis-info.ts';
import { isLoopback } from '../platform/addresses.ts';
import { type Finding, ok, problem, reported, warning } from './finding.ts';
import { settingName } from './settings.ts';

const SETTING = settingName('redis.url');

export async function checkRedis(
  { url, secret }: { url: string; secret?: string | undefined },
  limitMs: number,
): Promise<Finding[]> {
  const look = await inspectRedis(url, limitMs);
  if (look.kind === 'seen') return [...judge(look.info), ...checkSecret(url, secret)];
  const [message, action] =
    look.reason === 'refused'
      ? ['it refuses the credentials', `verify the user and the password in ${SETTING}, and that the user may run INFO`]
      : ['it is unreachable', `verify that it runs, and verify ${SETTING}; until then the server polls by itself`];
  return [problem('redis', `${message}: ${escapeText(look.detail, 200)}`, action)];
}

/** Warns of unsigned jobs unless Redis is on this machine, where only local users can reach it. */
function checkSecret(url: string, secret: string | undefined): Finding[] {
  if (secret !== undefined) return [ok('redis.secret', 'jobs and results are signed')];
  const host = URL.parse(url)?.hostname.replace(/^\[(.*)\]$/, '$1') ?? '';
  if (host === '' || isLoopback(host)) return [];
  return [
    warning(
      'redis.secret',
      'jobs and results are not signed, so every client with write access to Redis can forge results',
      `set the same ${settingName('redis.secret')} on the server and on every worker`,
    ),
  ];
}

function judge({ version, isTooOld, evictionPolicy, isAppendOnly, role }: RedisInfo): Finding[] {
  const losesJobs = 'the append-only file is disabled: a restart loses enqueued submissions that were not yet accepted';
  const evicts = `it evicts pending jobs when its memory is full (${evictionPolicy})`;
  const isSafe = evictionPolicy === SAFE_EVICTION_POLICY;
  return reported(
    isTooOld
      ? warning('redis', `version ${version} is too old`, `upgrade to ${NEEDED_REDIS_VERSION} or newer`)
      : ok('redis', version === null ? 'it responds' : `it responds, version ${version}`),
    role === 'slave' && problem('redis.role', 'it is a read-only replica', `set ${SETTING} to the primary`),
    isAppendOnly === true && ok('redis.persistence', 'the append-only file is enabled'),
    isAppendOnly === false && warning('redis.persistence', losesJobs, 'set appendonly to yes'),
    isSafe && ok('redis.eviction', 'it evicts nothing when its memory is full'),
    evictionPolicy !== null &&
      !isSafe &&
      warning('redis.eviction', evicts, `set maxmemory-policy to ${SAFE_EVICTION_POLICY}`),
  );
}
