import { z } from 'zod';
import { authSection, limitsSection, oidcSection } from '../access/settings.ts';
import { alertsSection, heartbeatSection } from '../alerts/settings.ts';
import { trustedProxyError } from '../lib/addresses.ts';
import { channelsSection, routesSection, webhooksSection } from '../notifications/settings.ts';
import { type Loaded, loadSettings, type SettingsFrom } from '../operations/config/load.ts';
import { baseUrl, checked, count, section } from '../operations/config/section-values.ts';
import { upstreamsSection } from '../polling/settings.ts';
import { redisSection } from '../redis/settings.ts';
import { retentionSection, submissionsSection } from '../submissions/settings.ts';

const isOrigin = (text: string) =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;

const serverSection = section({
  host: z.string().min(1).default('127.0.0.1').describe('Address to listen on'),
  public_url: baseUrl
    .optional()
    .describe(
      'Address at which people open the dashboard, for links in messages; default: no links',
    ),
  port: count(8080, 0, 65_535).describe('Port to listen on; 0 selects a free port'),
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
    .array(checked(trustedProxyError))
    .max(1_000)
    .default([])
    .describe(
      'Proxies in front of the server, as addresses, ranges, `loopback` or `private`. Their X-Forwarded-For header determines the client address; it is ignored from others',
    ),
});

const logSection = section({
  level: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Lowest level written'),
});

const settingsSchema = z.strictObject({
  server: serverSection,
  limits: limitsSection,
  auth: authSection,
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
  webhooks: webhooksSection,
  retention: retentionSection,
  channels: channelsSection,
  routes: routesSection,
  alerts: alertsSection,
  heartbeat: heartbeatSection,
});

/** All settings. Their descriptions are in docs/settings.md and in `dawatch config --json`. */
export const configSchema = settingsSchema.superRefine(
  ({ channels, routes, oidc, server }, context) => {
    const refuse = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path, message });
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

export type LoadedConfig = Loaded<Config>;

export function loadConfig(from: SettingsFrom): LoadedConfig {
  return loadSettings(configSchema, from);
}

/** Values without a setting. Tests replace some of them, so that they need not wait. */
export const TUNING = {
  /** Much more than 1,000 ids take on a slow connection. */
  requestTimeoutMs: 30_000,
  /** Readers of the feed and requests that wait: each takes about 20 kB of memory. */
  maxHeldOpen: 10_000,
  /** The first event for a channel waits for others to be sent in the same message. */
  gatherMs: 5_000,
  /** Enough for 100/s with responses of 80 ms. A failing receiver gets one at a time. */
  deliveriesInFlight: 8,
  /** Ended deliveries are kept for investigations and replays this long: a month. */
  deliveriesKeptMs: 30 * 86_400_000,
  /** Waiting deliveries of an alert: those of a minute at 20 submissions/s. */
  backlog: 1_000,
  /** Entries of the audit are kept for a year, and until that year has been reviewed. */
  auditKeptMs: 400 * 86_400_000,
  /** Requests in flight may take this long when the server stops. */
  shutdownMs: 15_000,
  /** Time between two evaluations of the alert rules, which take some milliseconds. */
  alertCheckMs: 5_000,
  /** How long Redis is down, or all workers are gone, before an alert: restarts take less. */
  redisDownMs: 10_000,
  noWorkersMs: 30_000,
  chainNodeMs: 60_000,
  /** Pauses of an upstream, one after the other, that are no usual limit of its rate. */
  pausedMs: 300_000,
  /**
   * Five failures in a row are not normal. Probed soon after a short outage, rarely in a long one.
   */
  breaker: { failures: 5, probeMs: 1_000, maxProbeMs: 30_000 },
  /** The key of each upstream is tested at the start. Tests that count requests do without. */
  testsKeys: true,
};

export type Tuning = typeof TUNING;
