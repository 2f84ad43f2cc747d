import { z } from 'zod';
import { count, pemFile, section } from '../operations/config/section-values.ts';
import type { PollingSettings } from '../polling/settings.ts';

export const workerSection = section({
  concurrency: count(100, 1, 1_000).describe('Maximum number of concurrent batches'),
}).describe('Settings of `dawatch worker`');

const redisFields = section({
  url: z
    .url({ protocol: /^rediss?$/, error: 'must be a redis:// or rediss:// address' })
    .optional()
    .describe(
      'Redis server for BullMQ: workers poll the upstream, the queue dawatch-submissions accepts submissions, and every event becomes a job of dawatch-events. rediss:// uses TLS. With `sentinels`, the host is the name of the primary: redis://mymaster',
    ),
  sentinels: z
    .array(
      z
        .string()
        .regex(
          /^(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?$/,
          'must be host:port, without a protocol and a password',
        ),
    )
    .default([])
    .describe(
      'Addresses of the Sentinels that know the primary, each host:port; default port: 26379. With rediss:// they use TLS, too',
    ),
  sentinel_user: z.string().min(1).optional().describe('ACL user for the Sentinels'),
  sentinel_password: z.string().min(1).optional().describe('Password for the Sentinels'),
  tls_ca_file: pemFile.describe(
    'PEM file of the certificate authorities that sign the certificate of Redis; default: those that Node trusts',
  ),
  tls_cert_file: pemFile.describe('PEM file of the client certificate, if Redis requires one'),
  tls_key_file: pemFile.describe(
    'PEM file of the private key of `tls_cert_file`, without a passphrase',
  ),
  prefix: z
    .string()
    .regex(/^[\w.{}-]{1,64}$/, 'must be letters, digits and _ . - { }, at most 64 of them')
    .default('bull')
    .describe('Prefix of the queue keys; the same for producers, consumers and workers'),
});

export const redisSection = redisFields.superRefine((redis, context) => {
  for (const [name, message] of problemsOf(redis))
    context.addIssue({ code: 'custom', path: [name], message });
});

/** Returns the settings that do not fit together, each with the problem. */
function problemsOf(redis: z.output<typeof redisFields>): [name: string, problem: string][] {
  const { url, sentinels } = redis;
  const isSet = (name: keyof typeof redis) => redis[name] !== undefined;
  const problems: [boolean, name: string, problem: string][] = [
    [
      sentinels.length > 0 && url === undefined,
      'sentinels',
      'requires redis.url with the name of the primary',
    ],
    [
      sentinels.length > 0 && url !== undefined && new URL(url).port !== '',
      'url',
      'must be the name of the primary without a port, such as redis://mymaster, because redis.sentinels is set',
    ],
    [
      isSet('sentinel_password') && sentinels.length === 0,
      'sentinel_password',
      'requires redis.sentinels',
    ],
    [
      isSet('sentinel_user') && !isSet('sentinel_password'),
      'sentinel_user',
      'requires redis.sentinel_password',
    ],
    [
      isSet('tls_cert_file') && !isSet('tls_key_file'),
      'tls_cert_file',
      'requires redis.tls_key_file',
    ],
    [
      isSet('tls_key_file') && !isSet('tls_cert_file'),
      'tls_key_file',
      'requires redis.tls_cert_file',
    ],
  ];
  const isTls = url?.startsWith('rediss:') ?? false;
  for (const name of ['tls_ca_file', 'tls_cert_file'] as const)
    problems.push([isSet(name) && !isTls, name, 'requires redis.url to begin with rediss://']);
  return problems.flatMap(([isProblem, name, problem]): [string, string][] =>
    isProblem ? [[name, problem]] : [],
  );
}

export type RedisConfig = z.output<typeof redisSection>;

/** The settings of `dawatch worker`. */
export type WorkerSettings = PollingSettings & {
  redis: RedisConfig;
  worker: z.output<typeof workerSection>;
  server: { shutdown_s: number };
};
