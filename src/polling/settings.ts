import { z } from 'zod';
import { headerProblem } from '../lib/request-headers.ts';
import {
  address,
  baseUrl,
  checked,
  count,
  recordByName,
  seconds,
  section,
} from '../operations/config/section-values.ts';
import { templateProblem } from '../submissions/explorer-link.ts';

const path = (fallback: string) =>
  z
    .string()
    .regex(/^\/[\x21-\x7e]+$/, 'must be a path that begins with /, printable ASCII without spaces')
    .refine((text) => !/[?#]/.test(text), 'must be a path without a query or a fragment')
    .default(fallback);

/** Set by requests to upstreams; a caller's Authorization may be forwarded. */
const OWN_HEADERS = ['accept', 'authorization', 'idempotency-key', 'x-api-key'];

const chainSection = section({
  urls: z
    .array(address('ws', 'wss'))
    .max(10)
    .default([])
    .describe(
      'WebSocket addresses of nodes of the chain: ws:// or wss://. The first one is asked first. They announce finalized blocks. A user and a password are sent as Basic authorization',
    ),
  verify: z
    .enum(['off', 'report', 'require'])
    .default('report')
    .describe(
      'Whether to look up the block on the chain. `report` shows the result, `require` also waits for the confirmation',
    ),
  verify_data: z
    .boolean()
    .default(false)
    .describe('Whether to fetch the block and prove that it contains the data'),
  explorer: checked(templateProblem)
    .optional()
    .describe(
      'Link to a block explorer, with the placeholders {block_number}, {block_hash}, {tx_hash} and {tx_index}: `https://explorer.example.com/block/{block_hash}`. Shown with each submission that has a block',
    ),
}).describe('Nodes of the chain');

const upstreamSchema = z.strictObject({
  url: baseUrl
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
      'Further headers of every request to the upstream, such as `X-Gateway-Key: …`. Their values are secrets; `X-Gateway-Key_file` names a file',
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

export const upstreamsSection = recordByName(upstreamSchema)
  .prefault({})
  .transform((upstreams): Record<string, UpstreamConfig> & { default: UpstreamConfig } => ({
    default: upstreamSchema.parse({}),
    ...upstreams,
  }))
  .describe('Upstream services by name; a tracking request selects one with `upstream`');

export type PollingSettings = {
  upstreams: z.output<typeof upstreamsSection>;
  submissions: { recheck_after_s: number };
};
