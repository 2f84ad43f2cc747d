import { escapeText } from '../domain/text.ts';
import {
  inspectRedis,
  NEEDED_REDIS_VERSION,
  type RedisInfo,
  SAFE_EVICTION_POLICY,
} from '../engines/bullmq/redis-info.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { settingName } from './settings.ts';

const SETTING = settingName('redis.url');

export async function checkRedis(
  { url, secret }: { url: string; secret?: string | undefined },
  limitMs: number,
): Promise<Finding[]> {
  const look = await inspectRedis(url, limitMs);
  if (look.kind === 'seen') return [...judge(look.info), ...judgeSecret(url, secret)];
  const [message, action] =
    look.reason === 'refused'
      ? ['it refuses the credentials', `see the user and the password in ${SETTING}, and that this user may use INFO`]
      : [
          'it is not reached',
          `see that it runs, and that ${SETTING} is right; until then the server does all by itself`,
        ];
  return [problem('redis', `${message}: ${escapeText(look.detail, 200)}`, action)];
}

/** On this machine only its own users reach Redis; elsewhere the network between the hosts counts too. */
function judgeSecret(url: string, secret: string | undefined): Finding[] {
  if (secret !== undefined) return [ok('redis.secret', 'jobs and results are signed')];
  if (isLoopback(url)) return [];
  return [
    warning(
      'redis.secret',
      'jobs and results are not signed: whoever can write to this Redis can forge what workers report',
      `set ${settingName('redis.secret')} to the same here and at every worker`,
    ),
  ];
}

function isLoopback(url: string): boolean {
  const host = URL.parse(url)?.hostname ?? '';
  return host === '' || /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/i.test(host);
}

function judge({ version, isTooOld, evictionPolicy, isAppendOnly, role }: RedisInfo): Finding[] {
  return [
    isTooOld
      ? warning('redis', `version ${version} is old`, `take ${NEEDED_REDIS_VERSION} or newer`)
      : ok('redis', version === null ? 'it answers' : `it answers, version ${version}`),
    ...(role === 'slave'
      ? [problem('redis.role', 'it is a replica, which takes no writes', `set ${SETTING} to the primary`)]
      : []),
    ...(isAppendOnly === null
      ? []
      : [
          isAppendOnly
            ? ok('redis.persistence', 'it keeps an append-only file')
            : warning(
                'redis.persistence',
                'it keeps no append-only file: a restart loses what others enqueued and was not taken yet',
                'set appendonly to yes',
              ),
        ]),
    ...(evictionPolicy === null
      ? []
      : [
          evictionPolicy === SAFE_EVICTION_POLICY
            ? ok('redis.eviction', 'it drops nothing when it is full')
            : warning(
                'redis.eviction',
                `when it is full it drops jobs that nobody has done (${evictionPolicy})`,
                `set maxmemory-policy to ${SAFE_EVICTION_POLICY}`,
              ),
        ]),
  ];
}
