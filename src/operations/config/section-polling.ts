import { z } from 'zod';
import { byName, count, httpUrl, seconds, section } from './section-values.ts';

const isBare = ({ username, password, search, hash }: URL) =>
  !(username || password || search || hash);

const path = (fallback: string) =>
  z
    .string()
    .regex(/^\/[\x21-\x7e]+$/, 'must be a path that begins with /, printable ASCII without spaces')
    .refine((text) => !/[?#]/.test(text), 'must be a path without a query or a fragment')
    .default(fallback);

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
  submit: section({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Forward POST /v1/submit_data and /v1/submit_raw_data to this upstream, and track the returned id before the client receives it',
      ),
    max_bytes: count(4 * 1024 * 1024, 1, 16 * 1024 * 1024).describe(
      'Maximum size of the submitted data in bytes',
    ),
  }).describe('Submitting data through dawatch'),
  timeout_s: seconds(10, 0.001).describe(
    'Seconds for a complete request, from connecting to the last byte',
  ),
  budget: section({
    requests: count(50, 1, 100_000).describe('Maximum number of requests in any window of `per_s`'),
    per_s: seconds(1, 0.001).describe('Length of the window in seconds'),
    concurrency: count(32, 1, 1_000).describe('Maximum number of concurrent requests'),
  }).describe(
    'Request budget of the submission endpoints, including submits; never exceeded. User lookups are not counted',
  ),
  lag_price: z
    .number()
    .min(0.01)
    .max(1_000)
    .default(1)
    .describe(
      'Price of one second of lag, in requests. A higher price detects finality sooner and costs more requests',
    ),
  slo: section({
    // Below 100 %, so that the error budget, which is the rest to 100 %, is not empty.
    target_percent: z
      .number()
      .min(0)
      .max(99.999)
      .default(0)
      .describe(
        'Percentage of submissions that are to be known as final within `within_s`, such as 99.5; 0: no objective',
      ),
    within_s: z
      .number()
      .min(1)
      .max(86_400)
      .default(120)
      .describe(
        'Seconds since tracking. A submission that is not known as final by then spends the error budget',
      ),
  }).describe('Service level objective; see docs/reports.md'),
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

export const reportsSection = section({
  metadata_key: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe(
      'Key of `metadata` by whose values reports group submissions, such as team. Applies to submissions that end from then on; the values of one day beyond the first 100 are one group',
    ),
});

export const workerSection = section({
  concurrency: count(100, 1, 1_000).describe('Maximum number of concurrent batches'),
}).describe('Settings of `dawatch worker`');
