import { z } from 'zod';
import { authSection, limitsSection, oidcSection } from '../access/settings.ts';
import { alertsSection, heartbeatSection } from '../alerts/settings.ts';
import { serverSection } from '../http/settings.ts';
import { channelsSection, routesSection, webhooksSection } from '../notifications/settings.ts';
import { type Loaded, loadSettings, type SettingsFrom } from '../operations/config/load.ts';
import { section } from '../operations/config/section-values.ts';
import { upstreamsSection } from '../polling/settings.ts';
import { redisSection } from '../redis/settings.ts';
import { retentionSection, submissionsSection } from '../submissions/settings.ts';

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

/** Loads all settings; see loadSettings. Throws ConfigError. */
export function loadConfig(from: SettingsFrom): LoadedConfig {
  return loadSettings(configSchema, from);
}
