import { z } from 'zod';
import { isAddressRange, isLoopback, trustedProxyError } from '../../lib/addresses.ts';
import { isSender } from '../../notifications/channels/sender.ts';
import { eventTypeSchema, MAX_TYPES, metadataFilterSchema } from '../../notifications/webhook.ts';
import {
  redisProblems,
  redisSection,
  submissionsSection,
  upstreamsSection,
  workerSection,
} from './section-polling.ts';
import { byName, count, days, httpUrl, pemFile, seconds, section } from './section-values.ts';

const webhooksSection = section({
  allow: z
    .array(
      z
        .string()
        .refine(isAddressRange, 'must be an IP address, or a range like 10.0.0.0/8 or fd00::/8'),
    )
    .default([])
    .describe(
      'Non-public addresses that receivers may have, as addresses or ranges; empty: receivers must have public addresses',
    ),
  allow_http: z.boolean().default(false).describe('Whether receivers may use http:// as well'),
}).describe('Webhooks and callback_url, whose addresses are set by clients');

const deliveriesSection = section({
  keep_s: seconds(30 * 86_400, 60).describe(
    'Seconds for which ended deliveries, including dead letters, are kept with all attempts. With `retention`, delivered ones are deleted with their event',
  ),
  concurrency: count(8, 1, 256).describe(
    'Maximum number of attempts in flight to one receiver. The limit rises while attempts succeed; a failing receiver gets one attempt at a time',
  ),
});

const retentionSection = section({
  submissions_days: days.describe(
    'Days for which final submissions are kept with their history, events and deliveries, and for which events about no submission are kept. Open submissions are always kept; 0: forever',
  ),
  submissions_max: count(0, 0).describe(
    'Maximum number of final submissions kept, the most recently finalized first; 0: no limit',
  ),
}).describe('Deletion of expired data');

const auditSection = section({
  keep_days: count(400, 0).describe('Days for which entries of the audit are kept; 0: forever'),
}).describe('The audit of changes and user lookups');

const channelSchema = z.discriminatedUnion(
  'type',
  [
    z.strictObject({
      type: z.literal('slack'),
      url: httpUrl.describe('Incoming webhook address'),
    }),
    z.strictObject({
      type: z.literal('discord'),
      url: httpUrl.describe('Webhook address'),
    }),
    z.strictObject({
      type: z.literal('teams'),
      url: httpUrl.describe('Incoming webhook address'),
    }),
    z.strictObject({
      type: z.literal('apprise'),
      url: httpUrl.describe('Notify address of an Apprise API: http://apprise:8000/notify/<key>'),
      tag: z
        .string()
        .min(1)
        .optional()
        .describe('Tag that selects services; default: all services'),
    }),
    z.strictObject({
      type: z.literal('email'),
      smtp_url: z
        .url({ protocol: /^smtps?$/, error: 'must be an smtp:// or smtps:// address' })
        .refine(
          (url) => !/[?#]/.test(url),
          'must be an address without a query; in a password, write %3F for ? and %23 for #',
        )
        .describe('Mail server: smtp://user:password@host:587'),
      tls: z
        .enum(['require', 'opportunistic', 'off'])
        .optional()
        .describe(
          'Whether smtp:// uses STARTTLS: `require` sends nothing without it, `opportunistic` uses it if the server offers it, `off` does not. Default: `require` with a login in `smtp_url`, otherwise `opportunistic`. smtps:// always uses TLS',
        ),
      tls_ca_file: pemFile.describe(
        'PEM file of the certificate authorities that sign the certificate of the mail server; default: those that Node trusts',
      ),
      ehlo_name: z
        .string()
        .regex(/^[\w.-]{1,255}$|^\[[\w.:]+\]$/, 'must be a host name, or an address in brackets')
        .optional()
        .describe('Name of this host in EHLO; default: the name of the machine'),
      from: z
        .string()
        .max(320)
        .refine(
          isSender,
          'must be an e-mail address, or a name with one: dawatch <dawatch@example.com>',
        )
        .describe('Sender address'),
      to: z
        .array(z.email('must be an e-mail address'))
        .min(1)
        .max(50)
        .describe('Recipient addresses'),
    }),
  ],
  'must be one of slack, discord, teams, apprise, email',
);

export type ChannelConfig = z.output<typeof channelSchema>;

const channelsSection = byName(channelSchema)
  .default({})
  .describe('Notification channels by name: slack, discord, teams, apprise, email');

const routeSchema = z.strictObject({
  types: z
    .array(eventTypeSchema)
    .min(1)
    .max(MAX_TYPES)
    .describe('Event types; wildcards such as alert.* are allowed'),
  metadata: metadataFilterSchema.optional(),
  channels: z.array(z.string()).min(1).describe('Names of channels'),
});

const routesSection = z
  .array(routeSchema)
  .max(100)
  .default([])
  .describe('Routes that select the channels of an event');

const alertsSection = section({
  failures: z
    .number()
    .int()
    .min(1)
    .default(10)
    .describe(
      'Number of submissions of one upstream that fail without recovering within 10 minutes',
    ),
  backlog: z.number().int().min(1).default(1_000).describe('Number of waiting deliveries'),
}).describe('Alert rules: an alert is raised when one of these numbers is reached');

const heartbeatSection = section({
  url: httpUrl
    .optional()
    .describe(
      'Address of a service that reports when calls stop, such as Healthchecks or Uptime Kuma. The server calls it with GET while it works. A user and a password in it are sent as Basic authorization',
    ),
  every_s: seconds(60, 1).describe('Seconds between two calls'),
}).describe("Dead man's switch");

/** Over http, a machine on the network path could replace the keys of the provider. */
const isIssuer = (text: string) => {
  const url = URL.parse(text);
  if (url === null || /[?#\s]/.test(text) || url.username !== '' || url.password !== '')
    return false;
  return (
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[(.*)\]$/, '$1')))
  );
};

const claimValues = z.array(z.string().min(1).max(200)).max(100).default([]);
const valuesFor = (role: string) =>
  claimValues.describe(`Values of the claim that give the role ${role}`);

const oidcSection = section({
  issuer: z
    .string()
    .refine(
      isIssuer,
      'must be an https:// address without user, query and fragment; http:// only on this machine',
    )
    .optional()
    .describe(
      'The OpenID Connect provider at which people sign in to the dashboard, exactly as it names itself. Requires client_id, server.public_url and a role',
    ),
  client_id: z.string().min(1).max(200).optional().describe('Client id of dawatch at the provider'),
  client_secret: z
    .string()
    .regex(/^[\x20-\x7e]+$/, 'must be printable ASCII')
    .optional()
    .describe('Client secret, created by the provider; not set: a public client'),
  name: z
    .string()
    .min(1)
    .max(40)
    .default('single sign-on')
    .describe('Name of the provider on the sign-in page: "Sign in with …"'),
  scopes: z
    .array(
      z
        .string()
        .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be a scope: printable ASCII without spaces'),
    )
    .max(50)
    .refine((scopes) => scopes.includes('openid'), 'must contain openid')
    .default(['openid', 'email', 'profile'])
    .describe('Scopes to request; the provider must then put `role_claim` into the ID token'),
  role_claim: z
    .string()
    .min(1)
    .max(200)
    .default('groups')
    .describe(
      'Claim of the ID token that determines the role: a text or a list of texts. Dots lead to nested claims: `realm_access.roles`',
    ),
  sign_out: z
    .boolean()
    .default(false)
    .describe(
      'Whether signing out of the dashboard also ends the session at the provider. The provider must permit the return to `server.public_url`',
    ),
  roles: section({
    admin: valuesFor('admin'),
    operator: valuesFor('operator'),
    service: valuesFor('service'),
    user: valuesFor('user'),
  }),
});

const isOrigin = (text: string) =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;

const isBase = (text: string) => {
  const url = URL.parse(text);
  return (
    /^https?:\/\//i.test(text) &&
    url !== null &&
    !/[?#\s]/.test(text) &&
    url.username === '' &&
    url.password === ''
  );
};

const proxy = z.string().superRefine((entry, context) => {
  const message = trustedProxyError(entry);
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

const credential = z
  .string()
  .regex(/^[\x21-\x7e]{32,}$/, 'must have at least 32 characters, printable ASCII without spaces')
  .optional();

const serverSection = section({
  host: z.string().min(1).default('127.0.0.1').describe('Address to listen on'),
  public_url: z
    .string()
    .refine(
      isBase,
      'must be an http:// or https:// address without user, query and fragment, like https://dawatch.example.com',
    )
    .optional()
    .describe(
      'Address at which people open the dashboard, for links in messages of channels and in alerts; default: no links',
    ),
  port: count(8080, 0, 65_535).describe('Port to listen on; 0 selects a free port'),
  shutdown_s: seconds(15).describe(
    'Seconds that requests in flight have to complete when the server stops',
  ),
  cors_origins: z
    .array(
      z
        .string()
        .refine(isOrigin, 'must be an origin as browsers send it, like https://app.example'),
    )
    .max(100)
    .default([])
    .describe('Origins whose pages may read responses, matched exactly; empty: none'),
  trusted_proxies: z
    .array(proxy)
    .max(1_000)
    .default([])
    .describe(
      'Proxies in front of the server, as addresses, ranges, `loopback` or `private`. Their X-Forwarded-For header determines the client address for limits, logs and the audit; it is ignored from any other sender',
    ),
});

const limitsSection = section({
  requests_per_minute: count(60_000, 0).describe(
    'Requests per minute of one credential, or of one address without a credential; 0: no limit',
  ),
  failed_authentications_per_minute: count(20, 0).describe(
    'Failed authentications per minute of one address. Above the limit, wrong credentials get 429 instead of 401, and bearers for the upstream are not forwarded; correct credentials still work. 0: no limit',
  ),
});

const authSection = section({
  api_key: credential.describe(
    'A service key for clients, preferably generated by `dawatch token create`: a key that begins with dawatch_service_ is never forwarded upstream, even after it was replaced. Without any credential, the first start creates a key and prints it',
  ),
  admin_token: credential.describe(
    'A token with the role admin. A token that begins with dawatch_admin_ is never forwarded upstream, even after it was replaced',
  ),
});

const sessionsSection = section({
  idle_s: seconds(7_200, 60).describe(
    'Seconds without a request after which a session of the dashboard ends. An open page sends requests while it is visible',
  ),
  max_s: seconds(43_200, 60).describe(
    'Seconds after the sign-in when a session of the dashboard ends',
  ),
});

const logSection = section({
  level: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Lowest level written'),
});

export type { UpstreamConfig } from './section-polling.ts';

const settingsSchema = z.strictObject({
  server: serverSection,
  limits: limitsSection,
  auth: authSection,
  sessions: sessionsSection,
  oidc: oidcSection,
  database: z
    .string()
    .min(1)
    .default('data/dawatch.db')
    .describe('Path of the ledger, a SQLite file'),
  log: logSection,
  upstreams: upstreamsSection,
  submissions: submissionsSection,
  redis: redisSection,
  worker: workerSection,
  webhooks: webhooksSection,
  deliveries: deliveriesSection,
  retention: retentionSection,
  audit: auditSection,
  channels: channelsSection,
  routes: routesSection,
  alerts: alertsSection,
  heartbeat: heartbeatSection,
});

/** All settings. Their descriptions are in docs/settings.md and in `dawatch config --json`. */
export const configSchema = settingsSchema.superRefine(
  ({ channels, routes, redis, oidc, server }, context) => {
    const refuse = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path, message });
    for (const [name, message] of redisProblems(redis)) refuse(['redis', name], message);
    if (oidc.issuer !== undefined) {
      if (oidc.client_id === undefined)
        refuse(['oidc', 'client_id'], 'is required, because oidc.issuer is set');
      if (server.public_url === undefined)
        refuse(
          ['server', 'public_url'],
          'is required, because oidc.issuer is set: the provider redirects to it',
        );
      if (Object.values(oidc.roles).every((values) => values.length === 0))
        refuse(
          ['oidc', 'roles'],
          'must give a role to at least one value of the claim; otherwise all sign-ins are refused',
        );
    }
    if (Object.hasOwn(channels, 'queue'))
      refuse(
        ['channels', 'queue'],
        'must have another name: queue is reserved for the queue in Redis',
      );
    for (const [index, route] of routes.entries())
      for (const name of route.channels)
        if (!Object.hasOwn(channels, name))
          refuse(
            ['routes', index, 'channels'],
            `must be names of channels; there is no channel ${JSON.stringify(name)}`,
          );
  },
);

export type Config = z.output<typeof configSchema>;

/** Environment variables and the setting each one overrides. */
export const ENVIRONMENT = {
  DAWATCH_UPSTREAM_URL: 'upstreams.default.url',
  DAWATCH_UPSTREAM_API_KEY: 'upstreams.default.api_key',
  DAWATCH_UPSTREAM_BEARER: 'upstreams.default.bearer',
  DAWATCH_CHAIN_URL: 'upstreams.default.chain.urls',
  DAWATCH_DATABASE: 'database',
  DAWATCH_HOST: 'server.host',
  DAWATCH_PORT: 'server.port',
  DAWATCH_PUBLIC_URL: 'server.public_url',
  DAWATCH_TRUSTED_PROXIES: 'server.trusted_proxies',
  DAWATCH_LOG_LEVEL: 'log.level',
  DAWATCH_API_KEY: 'auth.api_key',
  DAWATCH_ADMIN_TOKEN: 'auth.admin_token',
  DAWATCH_OIDC_ISSUER: 'oidc.issuer',
  DAWATCH_OIDC_CLIENT_ID: 'oidc.client_id',
  DAWATCH_OIDC_CLIENT_SECRET: 'oidc.client_secret',
  DAWATCH_REDIS_URL: 'redis.url',
  DAWATCH_REDIS_SENTINEL_PASSWORD: 'redis.sentinel_password',
  DAWATCH_HEARTBEAT_URL: 'heartbeat.url',
  DAWATCH_WEBHOOK_ALLOW: 'webhooks.allow',
  DAWATCH_WEBHOOK_ALLOW_HTTP: 'webhooks.allow_http',
} as const;
