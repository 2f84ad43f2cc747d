import { z } from 'zod';
import { headerProblem } from '../../lib/extra-headers.ts';
import { templateProblem } from '../../submissions/explorer-link.ts';
import { byName, count, httpUrl, pemFile, seconds, section } from './section-values.ts';

const isBare = ({ username, password, search, hash }: URL) =>
  !(username || password || search || hash);

const path = (fallback: string) =>
  z
    .string()
    .regex(/^\/[\x21-\x7e]+$/, 'must be a path that begins with /, printable ASCII without spaces')
    .refine((text) => !/[?#]/.test(text), 'must be a path without a query or a fragment')
    .default(fallback);

/** Set by requests to upstreams; a caller's Authorization may be forwarded. */
const OWN_HEADERS = ['accept', 'authorization', 'idempotency-key', 'x-api-key'];

const nodeUrl = z.string().superRefine((text, context) => {
  const url = URL.parse(text);
  const message =
    !url || !/^(?:wss?|https?):$/.test(url.protocol)
      ? 'must be a ws:// or wss:// address'
      : url.protocol.startsWith('http')
        ? `must be the WebSocket address of the node: ${url.protocol === 'https:' ? 'wss' : 'ws'}:// instead of ${url.protocol}//`
        : url.hash
          ? 'must be an address without a fragment'
          : undefined;
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

const chainSection = section({
  urls: z
    .array(nodeUrl)
    .max(10)
    .default([])
    .describe(
      'WebSocket addresses of nodes of the chain, tried in order: ws:// or wss://. A node announces each finalized block, so that dawatch polls when a submission has become final, and does not learn the time. A user and a password are sent as Basic authorization. Empty: none',
    ),
  verify: z
    .enum(['off', 'report', 'require'])
    .default('report')
    .describe(
      'Whether the block that the upstream names is looked up on the chain. `report` shows the result, `require` also waits for its confirmation before a submission becomes finalized',
    ),
  verify_data: z
    .boolean()
    .default(false)
    .describe(
      'Whether the block is fetched to prove that it contains the submission: the hash of its transaction must be `tx_hash`, and that of the submitted data, if it is known, the one in the transaction',
    ),
  explorer: z
    .string()
    .superRefine((template, context) => {
      const message = templateProblem(template);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .optional()
    .describe(
      'Link to a block explorer, with the placeholders {block_number}, {block_hash}, {tx_hash} and {tx_index}: `https://explorer.example.com/block/{block_hash}`. Shown with each submission that has a block',
    ),
}).describe('Node of the chain; see docs/chain.md');

const upstreamSchema = z.strictObject({
  url: httpUrl
    .refine((url) => !URL.canParse(url) || isBare(new URL(url)), {
      error: 'must be an address without credentials, a query or a fragment',
    })
    .optional()
    .describe('Base address of the upstream service. Required for tracking submissions'),
  api_key: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
    .optional()
    .describe('API key for the submission endpoints, sent as x-api-key'),
  bearer: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces, without the word Bearer')
    .optional()
    .describe("Token for user lookups. If not set, the caller's Authorization header is forwarded"),
  headers: z
    .record(z.string(), z.string())
    .superRefine((headers, context) => {
      const problem = headerProblem(headers, OWN_HEADERS);
      if (problem)
        context.addIssue({ code: 'custom', path: [problem.name], message: problem.reason });
    })
    .default({})
    .describe(
      'Further headers of every request to the upstream, for a proxy or firewall before it, by name: `X-Gateway-Key: …`. Their values are secrets: never shown; `X-Gateway-Key_file` names a file with the value',
    ),
  users: section({
    get_path: path('/users/get_user').describe(
      'Path that returns one user, relative to the base address',
    ),
    list_path: path('/admin/get_all_users').describe(
      'Path that lists users, relative to the base address',
    ),
    parameters: z
      .enum(['query', 'body'])
      .default('query')
      .describe(
        'Where user lookups send their parameters; body: as JSON in the body of the GET request',
      ),
  }).describe('User lookups'),
  timeout_s: seconds(10, 0.001).describe(
    'Seconds for a complete request, from connecting to the last byte',
  ),
  budget: section({
    requests: count(50, 1, 100_000).describe('Maximum number of requests in any window of `per_s`'),
    per_s: seconds(1, 0.001).describe('Length of the window in seconds'),
    concurrency: count(32, 1, 1_000).describe('Maximum number of concurrent requests'),
  }).describe(
    'Request budget of the submission endpoint; never exceeded. User lookups are not counted',
  ),
  lag_price: z
    .number()
    .min(0.01)
    .max(1_000)
    .default(1)
    .describe(
      'Price of one second of lag, in requests. A higher price detects finality sooner and costs more requests',
    ),
  chain: chainSection,
});

export type UpstreamConfig = z.output<typeof upstreamSchema>;

export const upstreamsSection = byName(upstreamSchema)
  .prefault({})
  .transform((upstreams): Record<string, UpstreamConfig> & { default: UpstreamConfig } => ({
    default: upstreamSchema.parse({}),
    ...upstreams,
  }))
  .describe('Upstream services by name; a tracking request selects one with `upstream`');

export const submissionsSection = section({
  deadline_s: seconds(86_400, 1).describe(
    'Seconds until a submission that is not final ends as failed or expired',
  ),
  unknown_grace_s: seconds(900).describe(
    'Seconds for which "not found" is treated as "not yet", counting only time in which the id was polled; at least 120',
  ),
  stuck_after_s: seconds(600).describe(
    'Seconds after which an open submission is reported as stuck',
  ),
  recheck_after_s: seconds(0).describe(
    'Seconds after finality at which a submission is polled once more to detect a correction; 0: never',
  ),
}).describe('Defaults for submissions; a tracking request can override them');

export const workerSection = section({
  concurrency: count(100, 1, 1_000).describe('Maximum number of concurrent batches'),
}).describe('Settings of `dawatch worker`');

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
