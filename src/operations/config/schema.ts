import { z } from 'zod';
import {
  alertsSection,
  auditSection,
  channelsSection,
  deliveriesSection,
  heartbeatSection,
  retentionSection,
  routesSection,
  webhooksSection,
} from './section-notifications.ts';
import { oidcSection } from './section-oidc.ts';
import {
  reportsSection,
  submissionsSection,
  upstreamsSection,
  workerSection,
} from './section-polling.ts';
import { redisProblems, redisSection } from './section-redis.ts';
import {
  authSection,
  limitsSection,
  logSection,
  serverSection,
  sessionsSection,
} from './section-server.ts';

export type { ChannelConfig } from './section-notifications.ts';
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
  reports: reportsSection,
  heartbeat: heartbeatSection,
});

/** All settings. The descriptions become docs/settings.md and the output of `dawatch config`. */
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
  DAWATCH_REDIS_SECRET: 'redis.secret',
  DAWATCH_REDIS_PREVIOUS_SECRET: 'redis.previous_secret',
  DAWATCH_REDIS_SENTINEL_PASSWORD: 'redis.sentinel_password',
  DAWATCH_HEARTBEAT_URL: 'heartbeat.url',
  DAWATCH_WEBHOOK_ALLOW: 'webhooks.allow',
  DAWATCH_WEBHOOK_ALLOW_HTTP: 'webhooks.allow_http',
} as const;
