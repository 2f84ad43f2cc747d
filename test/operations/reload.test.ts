import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/operations/config/load.ts';
import { compareSettings, isReloadable } from '../../src/operations/config/reload.ts';
import type { Config } from '../../src/operations/config/schema.ts';

const URLS = { DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1' };
const load = (env: Record<string, string> = {}) =>
  loadConfig({ env: { ...URLS, ...env }, file: null });

function changed(change: (config: Config) => void): Config {
  const config = structuredClone(load().config);
  change(config);
  return config;
}

describe('a change of settings', () => {
  const before = load().config;
  const cases: [string, (config: Config) => void, string[], string[]][] = [
    ['nothing', () => undefined, [], []],
    [
      'the public address and the heartbeat',
      ({ server, heartbeat }) => {
        server.public_url = 'https://dawatch.example.com';
        Object.assign(heartbeat, { url: 'https://h.example/', every_s: 30 });
      },
      ['heartbeat.every_s', 'heartbeat.url', 'server.public_url'],
      [],
    ],
    [
      'a new upstream',
      ({ upstreams }) =>
        void Object.assign(upstreams, { a: { ...upstreams.default, bearer: undefined } }),
      expect.arrayContaining(['upstreams.a.budget.requests', 'upstreams.a.url']),
      expect.arrayContaining(['upstreams.a.url']),
    ],
    [
      'the first bearer',
      ({ upstreams }) => {
        upstreams.default.bearer = 'x';
      },
      ['upstreams.default.bearer'],
      ['upstreams.default.bearer'],
    ],
    [
      'a new channel',
      (config) => {
        config.channels = { ops: { type: 'slack', url: 'https://a.example' } };
      },
      ['channels.ops.type', 'channels.ops.url'],
      [],
    ],
  ];
  it.each(cases)(
    '%s: its name, and whether it needs a restart',
    (_name, change, changes, needRestart) => {
      expect(compareSettings(before, changed(change), 'server')).toEqual({ changes, needRestart });
    },
  );

  it('of the server does not concern a worker', () => {
    const after = changed((config) => {
      config.server.port = 1;
      config.auth.api_key = 'x';
      config.upstreams.default.budget.requests = 1;
      config.upstreams.default.api_key = 'x';
    });
    expect(compareSettings(before, after, 'worker')).toEqual({
      changes: ['upstreams.default.api_key'],
      needRestart: [],
    });
  });
});

it('a server reloads keys, budgets, chains, channels, routes, the public address, the heartbeat, sessions, the provider and the log level, and nothing else', () => {
  const names = [...load().settings.map(({ path }) => path), 'channels.ops.url'].filter(
    isReloadable,
  );
  expect(names.sort()).toEqual([
    ...[
      'auth.admin_token',
      'auth.api_key',
      'channels.ops.url',
      'heartbeat.every_s',
      'heartbeat.url',
      'log.level',
    ],
    ...['client_id', 'client_secret', 'issuer', 'name', 'role_claim'].map((name) => `oidc.${name}`),
    ...['admin', 'operator', 'service', 'user'].map((role) => `oidc.roles.${role}`),
    'oidc.scopes',
    'oidc.sign_out',
    ...['routes', 'server.public_url', 'sessions.idle_s', 'sessions.max_s'],
    ...['upstreams.default.api_key', 'upstreams.default.bearer'],
    ...['concurrency', 'per_s', 'requests'].map((name) => `upstreams.default.budget.${name}`),
    ...['explorer', 'urls', 'verify', 'verify_data'].map(
      (name) => `upstreams.default.chain.${name}`,
    ),
  ]);
});
