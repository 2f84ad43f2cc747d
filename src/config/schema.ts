import { z } from 'zod';
import { eventTypeSchema, MAX_TYPES, metadataFilterSchema } from '../domain/notifications/subscription.ts';
import { isCidr } from '../notify/transport/address-guard.ts';
import { trustedProxyError } from '../platform/addresses.ts';

const seconds = (fallback: number, minimum = 0) =>
  z
    .number()
    .min(minimum)
    .max(366 * 86_400)
    .default(fallback);

const days = z.number().min(0).max(36_600).default(0);

const perMinute = (fallback: number) => z.number().int().min(0).max(1_000_000_000).default(fallback);

const isOrigin = (text: string) => /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;

const isBare = ({ username, password, search, hash }: URL) => !(username || password || search || hash);

const lagPrice = z.number().min(0.01).max(1_000);
const signingSecret = z
  .string()
  .regex(/^[\x21-\x7e]{32,512}$/, '32 to 512 characters, printable ASCII without spaces: openssl rand -base64 32');

const path = (fallback: string) =>
  z
    .string()
    .regex(/^\/[\x21-\x7e]+$/, 'must be a path that begins with /, printable ASCII without spaces')
    .refine((text) => !/[?#]/.test(text), 'must be a path without a query or a fragment')
    .default(fallback);

const upstreamSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' })
    .refine((url) => !URL.canParse(url) || isBare(new URL(url)), {
      error: 'must be an address without credentials, a query or a fragment',
    })
    .optional()
    .describe('Base address of the upstream service. Nothing can be tracked without one'),
  api_key: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
    .optional()
    .describe('Key for its submission endpoints, sent as x-api-key'),
  bearer: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces, without the word Bearer')
    .optional()
    .describe("Token for its lookups of users. Without one, the caller's own Authorization is sent"),
  users: z
    .strictObject({
      get_path: path('/users/get_user').describe('Path of the lookup of one user, below the base address'),
      list_path: path('/admin/get_all_users').describe('Path of the listing of users'),
      parameters: z
        .enum(['query', 'body'])
        .default('query')
        .describe('Where the parameters of these travel; body: as JSON in the body of the GET'),
    })
    .prefault({})
    .describe('Its lookups of users'),
  timeout_s: seconds(10, 0.001).describe('Seconds for one whole call, from connecting to the last byte'),
  budget: z
    .strictObject({
      requests: z.number().int().min(1).max(100_000).default(50).describe('At most so many requests in any `per_s`'),
      per_s: seconds(1, 0.001).describe('Seconds of that window'),
      concurrency: z.number().int().min(1).max(1_000).default(32).describe('At most so many requests at once'),
    })
    .prefault({})
    .describe(
      'What the upstream grants for its submission endpoints; never exceeded. Lookups of users are not counted',
    ),
  lag_price: lagPrice
    .optional()
    .describe('Requests that one second of lag is worth here; without it, `pacing.lag_price`'),
});

const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' });
const gatherS = seconds(5).describe('Seconds for which the first event waits for others that are told in one message');

const channelSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('slack'), url: httpUrl.describe('Its incoming webhook'), gather_s: gatherS }),
  z.strictObject({ type: z.literal('discord'), url: httpUrl.describe('Its webhook'), gather_s: gatherS }),
  z.strictObject({ type: z.literal('teams'), url: httpUrl.describe('Its incoming webhook'), gather_s: gatherS }),
  z.strictObject({
    type: z.literal('apprise'),
    url: httpUrl.describe('Notify address of an Apprise API: http://apprise:8000/notify/<key>'),
    tag: z.string().min(1).optional().describe('Which of its services; all without one'),
    gather_s: gatherS,
  }),
  z.strictObject({
    type: z.literal('email'),
    smtp_url: z
      .url({ protocol: /^smtps?$/, error: 'must be an smtp:// or smtps:// address' })
      .describe('Its server: smtp://user:password@host:587'),
    from: z.string().min(3).max(320).describe('Sender'),
    to: z.array(z.email()).min(1).max(50).describe('Recipients'),
    gather_s: gatherS,
  }),
]);

const routeSchema = z.strictObject({
  types: z.array(eventTypeSchema).min(1).max(MAX_TYPES).describe('Event types, wildcards like alert.* too'),
  metadata: metadataFilterSchema.optional(),
  channels: z.array(z.string()).min(1).describe('Names of channels'),
});

const settingsSchema = z.strictObject({
  server: z
    .strictObject({
      host: z.string().min(1).default('127.0.0.1').describe('Address to listen on'),
      port: z.number().int().min(0).max(65_535).default(8080).describe('Port to listen on; 0 takes a free one'),
      shutdown_s: seconds(15).describe('Seconds that requests under way have to end when the server stops'),
      timeout_s: seconds(30, 0.001).describe(
        'Seconds in which a whole request must have come, and for which a caller may take nothing of its answer; then the connection is closed',
      ),
      cors_origins: z
        .array(z.string().refine(isOrigin, 'must be an origin as browsers send it, like https://app.example'))
        .max(100)
        .default([])
        .describe('Origins whose pages may read the answers, each exactly; without any, none'),
      trusted_proxies: z
        .array(
          z.string().superRefine((entry, context) => {
            const message = trustedProxyError(entry);
            if (message !== undefined) context.addIssue({ code: 'custom', message });
          }),
        )
        .max(1_000)
        .default([])
        .describe(
          'Proxies in front of the server, as addresses, ranges, `loopback` or `private`: their X-Forwarded-For or Forwarded gives the address of the client, for limits, logs and the audit. Headers of others are ignored',
        ),
    })
    .prefault({}),
  limits: z
    .strictObject({
      requests_per_minute: perMinute(60_000).describe(
        'Requests that one credential, or one address without any, may make in a minute; 0: no limit',
      ),
      failed_authentications_per_minute: perMinute(20).describe(
        'Different wrong credentials from one address in a minute; then only tokens of `dawatch token create` and credentials that it used before are looked up. 0: no limit',
      ),
      tracking_wait_s: seconds(5, 0.001).describe(
        'Seconds that tracking requests may wait for the ledger; what would wait for longer is told 503 with Retry-After',
      ),
      held_open: z
        .number()
        .int()
        .min(1)
        .max(1_000_000_000)
        .default(10_000)
        .describe(
          'Readers of the live feed and requests that wait for a submission, at once; more are told 503, except from credentials that have less than an equal share',
        ),
      receive_bytes_per_s: z
        .number()
        .int()
        .min(0)
        .max(1_000_000)
        .default(1_024)
        .describe(
          'Bytes a second at which the body of a request must arrive, on average over 5 seconds; a slower one is refused with 408. 0: no limit',
        ),
    })
    .prefault({}),
  auth: z
    .strictObject({
      api_key: z
        .string()
        .regex(/^[\x21-\x7e]{16,}$/, 'must have at least 16 characters, printable ASCII without spaces')
        .optional()
        .describe(
          'A service key that clients may use, best one of `dawatch token create`: what begins with dawatch_service_ is never forwarded upstream, even after it was replaced. Without any credential, one is made and shown at the first start',
        ),
      admin_token: z
        .string()
        .regex(/^[\x21-\x7e]{16,}$/, 'must have at least 16 characters, printable ASCII without spaces')
        .optional()
        .describe(
          'A token of the role admin; what begins with dawatch_admin_ is never forwarded upstream, even after it was replaced',
        ),
    })
    .prefault({}),
  database: z.string().min(1).default('data/dawatch.db').describe('Path of the ledger, a SQLite file'),
  log: z
    .strictObject({
      level: z
        .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
        .default('info')
        .describe('Least level shown'),
      format: z.enum(['auto', 'json', 'pretty']).default('auto').describe('auto: pretty on a terminal, else JSON'),
      repeats_per_minute: z
        .number()
        .int()
        .min(0)
        .default(10)
        .describe(
          'Lines of one name about one thing that are shown in a minute, at warn and error; the rest is counted. 0: all',
        ),
    })
    .prefault({}),
  upstreams: z
    .record(
      z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'must be a name of a-z, 0-9, - and _, at most 32 of them'),
      upstreamSchema,
    )
    .prefault({})
    .transform((upstreams) => ({ default: upstreamSchema.parse({}), ...upstreams }))
    .describe('The upstream services by name; a tracking request chooses one by `upstream`'),
  submissions: z
    .strictObject({
      deadline_s: seconds(86_400, 1).describe('Seconds until a submission that is not final ends as failed or expired'),
      unknown_grace_s: seconds(900).describe(
        'Seconds for which "not found" only means "not yet", counting time in which the id was polled; at least 120 count',
      ),
      stuck_after_s: seconds(600).describe('Seconds after which an open submission is told to be stuck'),
      recheck_after_s: seconds(0).describe(
        'Seconds after which a finalized submission is asked about once more, so that a correction is noticed; 0: never',
      ),
    })
    .prefault({})
    .describe('Defaults of every submission; a tracking request may set its own'),
  redis: z
    .strictObject({
      url: z
        .url({ protocol: /^rediss?$/, error: 'must be a redis:// or rediss:// address' })
        .optional()
        .describe(
          'A Redis, for BullMQ: workers ask the upstream, dawatch-submissions takes submissions, and every event becomes a job of dawatch-events',
        ),
      secret: signingSecret
        .optional()
        .describe(
          'Signs jobs, results and announcements between the server and its workers, which all set the same: nobody else who can write to Redis can then forge them. Without one nothing is signed',
        ),
      previous_secret: signingSecret
        .optional()
        .describe('Accepted beside `secret` while it is replaced: set on the workers first, then the server'),
      prefix: z
        .string()
        .regex(/^[\w.{}-]{1,64}$/, 'must be letters, digits and _ . - { }, at most 64 of them')
        .default('bull')
        .describe('How the keys of those queues begin; producers, consumers and workers set the same'),
    })
    .prefault({}),
  worker: z
    .strictObject({
      name: z
        .string()
        .regex(/^[\w.-]{1,100}$/, 'must be letters, digits and _ . -, at most 100 of them')
        .optional()
        .describe('How it is shown, unlike any other; without one, made of its host and process'),
      concurrency: z.number().int().min(1).max(1_000).default(100).describe('At most so many batches at once'),
    })
    .prefault({})
    .describe('Of `dawatch worker`'),
  webhooks: z
    .strictObject({
      allow: z
        .array(z.string().refine(isCidr, 'must be a range of addresses like 10.0.0.0/8 or fd00::/8'))
        .default([])
        .describe('Addresses that receivers may have although they are not public; without any, only public ones'),
      allow_http: z.boolean().default(false).describe('Whether receivers may be http:// too'),
      disable_after_s: seconds(5 * 86_400, 1).describe('After so long of nothing but failures a webhook is disabled'),
    })
    .prefault({})
    .describe('For webhooks and callback_url, whose addresses come from clients'),
  deliveries: z
    .strictObject({
      keep_s: seconds(30 * 86_400, 60).describe(
        'Seconds for which deliveries are kept after they ended, dead letters too, with every attempt; with `retention`, those that arrived go with their event',
      ),
      concurrency: z
        .number()
        .int()
        .min(1)
        .max(256)
        .default(8)
        .describe(
          'Attempts that may be under way to one receiver; it is reached as they arrive, and one that fails gets one',
        ),
    })
    .prefault({}),
  retention: z
    .strictObject({
      submissions_days: days.describe(
        'Days for which submissions are kept after they became final, with history, events and deliveries; open ones always are. 0: for ever',
      ),
      submissions_max: z
        .number()
        .int()
        .min(0)
        .max(1_000_000_000)
        .default(0)
        .describe('At most so many final submissions are kept, those that became final last; 0: all'),
      events_days: days.describe(
        'Days for which events can be read again from the live feed, if their submission is kept for longer; 0: as long as that',
      ),
    })
    .prefault({})
    .describe('What is deleted once it is over'),
  channels: z
    .record(
      z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'must be a name of a-z, 0-9, - and _, at most 32 of them'),
      channelSchema,
    )
    .default({})
    .describe('Ways to reach people, by name: slack, discord, teams, apprise, email'),
  routes: z.array(routeSchema).max(100).default([]).describe('Which events go to which channels'),
  alerts: z
    .strictObject({
      check_s: seconds(5, 0.01).describe('Seconds between two looks at what alerts are about'),
      remind_after_s: seconds(4 * 3_600, 1).describe('An alert that still holds is told again after so many seconds'),
      failures: z
        .number()
        .int()
        .min(1)
        .default(10)
        .describe('So many submissions that get Error at one upstream and do not recover …'),
      failures_window_s: seconds(600, 1).describe('… within so many seconds are an alert'),
      backlog: z.number().int().min(1).default(1_000).describe('So many deliveries that wait are an alert'),
      wal_mib: z
        .number()
        .int()
        .min(64)
        .max(1_048_576)
        .default(256)
        .describe('So many MiB of write-ahead log beside the ledger are an alert'),
    })
    .prefault({}),
  facade: z
    .strictObject({
      max_age_s: z
        .number()
        .min(0)
        .max(60)
        .default(2)
        .describe('Seconds for which /v1/get_submission_info gives the last answer about an open submission again'),
    })
    .prefault({}),
  users: z
    .strictObject({
      max_limit: z
        .number()
        .int()
        .min(1)
        .max(10_000)
        .default(1_000)
        .describe('The largest `limit` of a listing of users'),
    })
    .prefault({}),
  pacing: z
    .strictObject({
      lag_price: lagPrice
        .default(1)
        .describe(
          'Requests that one second of lag is worth. Higher: finality is known sooner, for more requests. An upstream may set its own',
        ),
    })
    .prefault({}),
  breaker: z
    .strictObject({
      failures: z.number().int().min(1).max(1_000).default(5).describe('So many failures in a row mean an outage'),
      probe_after_s: seconds(1, 0.01).describe(
        'Seconds until the first probe of an upstream that is out; then doubled',
      ),
      max_probe_s: seconds(30, 0.01).describe('Most seconds between two probes'),
    })
    .prefault({}),
});

export const configSchema = settingsSchema.superRefine(({ channels, routes, redis }, context) => {
  if (redis.previous_secret !== undefined && redis.secret === undefined)
    context.addIssue({
      code: 'custom',
      path: ['redis', 'previous_secret'],
      message: 'redis.secret is needed beside it',
    });
  if (Object.hasOwn(channels, 'queue'))
    context.addIssue({
      code: 'custom',
      path: ['channels', 'queue'],
      message: 'must have another name: this one is taken by the queue in Redis',
    });
  for (const [index, route] of routes.entries())
    for (const name of route.channels)
      if (!Object.hasOwn(channels, name))
        context.addIssue({
          code: 'custom',
          path: ['routes', index, 'channels'],
          message: `must be names of channels, and none is named ${JSON.stringify(name)}`,
        });
});

export type ChannelConfig = z.output<typeof channelSchema>;
export type Config = z.output<typeof configSchema>;
export type UpstreamConfig = z.output<typeof upstreamSchema>;

/** Environment variables and the setting each one sets. */
export const ENVIRONMENT = {
  DAWATCH_UPSTREAM_URL: 'upstreams.default.url',
  DAWATCH_UPSTREAM_API_KEY: 'upstreams.default.api_key',
  DAWATCH_UPSTREAM_BEARER: 'upstreams.default.bearer',
  DAWATCH_DATABASE: 'database',
  DAWATCH_HOST: 'server.host',
  DAWATCH_PORT: 'server.port',
  DAWATCH_TRUSTED_PROXIES: 'server.trusted_proxies',
  DAWATCH_LOG_LEVEL: 'log.level',
  DAWATCH_API_KEY: 'auth.api_key',
  DAWATCH_ADMIN_TOKEN: 'auth.admin_token',
  DAWATCH_REDIS_URL: 'redis.url',
  DAWATCH_PACING_LAG_PRICE: 'pacing.lag_price',
  DAWATCH_REDIS_SECRET: 'redis.secret',
  DAWATCH_REDIS_PREVIOUS_SECRET: 'redis.previous_secret',
  DAWATCH_WEBHOOK_ALLOW: 'webhooks.allow',
  DAWATCH_WEBHOOK_ALLOW_HTTP: 'webhooks.allow_http',
} as const;

const WITHOUT_INTERVALS =
  'removed: polls follow the learned distribution of finality time; pacing.lag_price says how many requests a second of lag is worth';

/** Settings of earlier versions, and what a file that still has them is told. */
export const REMOVED: Record<string, string | undefined> = {
  'pacing.min_interval_s': WITHOUT_INTERVALS,
  'pacing.max_interval_s': WITHOUT_INTERVALS,
};
