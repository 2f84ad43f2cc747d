import { z } from 'zod';
import { section } from './section-values.ts';

const signingSecret = z
  .string()
  .regex(
    /^[\x21-\x7e]{32,512}$/,
    '32 to 512 characters, printable ASCII without spaces: openssl rand -base64 32',
  );

const pemFile = z.string().min(1).optional();

export const redisSection = section({
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
  secret: signingSecret
    .optional()
    .describe(
      'Signs jobs, results and announcements between the server and its workers, so that other clients of Redis cannot forge them. Set the same secret on all of them; if not set, nothing is signed',
    ),
  previous_secret: signingSecret
    .optional()
    .describe(
      'Accepted in addition to `secret` during a rotation: set it on the workers first, then on the server',
    ),
  prefix: z
    .string()
    .regex(/^[\w.{}-]{1,64}$/, 'must be letters, digits and _ . - { }, at most 64 of them')
    .default('bull')
    .describe('Prefix of the queue keys; the same for producers, consumers and workers'),
});

/** Returns the settings that do not fit together, each with the problem. */
export function redisProblems(
  redis: z.output<typeof redisSection>,
): [name: string, problem: string][] {
  const { url, sentinels } = redis;
  const isSet = (name: keyof typeof redis) => redis[name] !== undefined;
  const problems: [boolean, name: string, problem: string][] = [
    [isSet('previous_secret') && !isSet('secret'), 'previous_secret', 'requires redis.secret'],
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
