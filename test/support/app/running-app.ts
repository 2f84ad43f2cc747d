import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, onTestFinished } from 'vitest';
import { type App, type AppDeps, startApp } from '../../../src/app.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { createLog } from '../../../src/operations/logging/logger.ts';
import { eventPacing, type PolicyFactory } from '../../../src/pacing/index.ts';
import type { UpstreamConfig } from '../../../src/polling/settings.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/server.ts';
import { type Config, loadConfig } from '../../../src/wiring/settings.ts';
import { createLedger } from '../ledger/ledger-file.ts';
import { tempFolder } from '../temp-folder.ts';

export const API_KEY = 'a-service-key-for-tests-0123456789';
/** A closed port. */
const CLOSED_PORT_URL = 'http://127.0.0.1:1';

type AppSetting = {
  database: string;
  upstreamUrl?: string;
  /** null: no key is configured. */
  apiKey?: string | null;
  host?: string;
  port?: number;
  clock?: Clock;
  limits?: Partial<Config['limits']>;
  corsOrigins?: string[];
  trustedProxies?: string[];
  adminToken?: string | undefined;
  /** Further settings of the upstream: its bearer, its paths, its timeout. */
  upstream?: Partial<UpstreamConfig>;
  /** The permitted receivers: none on this machine by default. */
  webhooks?: Partial<Config['webhooks']>;
  channels?: Config['channels'];
  routes?: Config['routes'];
  heartbeat?: { url: string; every_s: number };
  /** server.public_url. */
  publicUrl?: string;
  retention?: Partial<Config['retention']>;
  redisUrl?: string;
  /** Tests that count events need a long interval of alert checks. */
  tuning?: AppDeps['tuning'];
  logLevel?: Config['log']['level'];
  onNewKey?: (key: string) => void;
  onLog?: (line: string) => void;
  policy?: AppDeps['policy'];
  oidc?: Config['oidc'];
  /** By name, with the settings that differ from the defaults. */
};

/** The settings of config/dawatch.yaml, read once per process. */
const DEFAULTS = loadConfig({
  env: { DAWATCH_UPSTREAM_URL: CLOSED_PORT_URL, DAWATCH_UPSTREAM_API_KEY: 'sandbox-key' },
}).config;

const TROUBLE = ['throttled', 'unavailable', 'unauthorized', 'rejected'];

const FAST: AppDeps['tuning'] = {
  // Each check and each probe takes a millisecond of CPU, also while a test does something else.
  alertCheckMs: 250,
  gatherMs: 0,
  shutdownMs: 2_000,
  breaker: { failures: 3, probeMs: 20, maxProbeMs: 200 },
  testsKeys: false,
};

/** The policy of the product, with shorter waits after failures. */
function impatient(settings: { lagPrice: number }): PolicyFactory {
  return (deps) => {
    const policy = eventPacing(settings)(deps);
    const learn = policy.learn.bind(policy);
    policy.learn = (item, observation, now) => {
      const dueAt = learn(item, observation, now);
      return TROUBLE.includes(observation.kind) ? Math.min(dueAt, now + 30) : dueAt;
    };
    return policy;
  };
}

/**
 * The real app with a second, unreachable upstream "other", and with the pacing for an accelerated
 * sandbox. The caller closes it.
 */
export function openApp(setting: AppSetting): Promise<App> {
  createLedger(setting.database);
  const config = configOf(setting);
  return startApp({
    config,
    // All lines, because a test may expect any of them.
    log: createLog(
      { level: setting.logLevel ?? 'info' },
      { write: setting.onLog ?? (() => undefined) },
      { repeatsPerMinute: 0 },
    ),
    clock: setting.clock ?? systemClock,
    random: () => 0.5,
    onNewKey: setting.onNewKey ?? (() => undefined),
    policy: setting.policy ?? impatient,
    tuning: { ...FAST, ...setting.tuning },
  });
}

/** The settings of an app. */
function configOf(setting: AppSetting): Config {
  const {
    database,
    upstreamUrl = CLOSED_PORT_URL,
    apiKey = API_KEY,
    host = '127.0.0.1',
    port = 0,
  } = setting;
  const config = { ...structuredClone(DEFAULTS), database };
  const budget = { requests: 5_000, per_s: 1, concurrency: 64 };
  const upstream = {
    ...config.upstreams.default,
    url: upstreamUrl,
    budget,
    // In a sandbox at speed 200, a second of lag costs 200 times as much.
    lag_price: 1_000,
    ...setting.upstream,
  };
  return {
    ...config,
    server: {
      ...config.server,
      host,
      port,
      ...(setting.publicUrl !== undefined && { public_url: setting.publicUrl }),
      ...(setting.corsOrigins && { cors_origins: setting.corsOrigins }),
      ...(setting.trustedProxies && { trusted_proxies: setting.trustedProxies }),
    },
    // Tests send many wrong credentials from one address.
    limits: { ...config.limits, failed_authentications_per_minute: 0, ...setting.limits },
    auth: { service_key: apiKey ?? undefined, admin_token: setting.adminToken },
    webhooks: { ...config.webhooks, ...setting.webhooks },
    channels: setting.channels ?? {},
    routes: setting.routes ?? [],
    // Of features that can be deleted.
    ...(setting.heartbeat && { heartbeat: setting.heartbeat }),
    retention: { ...config.retention, ...setting.retention },
    ...(setting.redisUrl !== undefined && { redis: { url: setting.redisUrl } }),
    oidc: setting.oidc ?? config.oidc,
    upstreams: Object.assign(
      { default: upstream },
      { other: { ...upstream, url: CLOSED_PORT_URL } },
    ),
  };
}

/** Opens an app, by default with a new ledger. It is closed when the test ends. */
export async function appForTest(setting: Partial<AppSetting> = {}): Promise<App> {
  const app = await openApp({ database: join(tempFolder(), 'ledger.db'), ...setting });
  onTestFinished(() => app.close());
  return app;
}

/**
 * Opens something for all tests of a file. A failed test may leave it in any state, so it is
 * replaced for the next attempt.
 */
export function useOpened<T extends { close(): Promise<void> }>(open: () => Promise<T>): () => T {
  let opened: T | undefined;
  const close = async () => {
    await opened?.close();
    opened = undefined;
  };
  beforeAll(async () => {
    opened = await open();
  });
  afterEach(async ({ task }) => {
    if (task.result?.state !== 'fail') return;
    await close();
    opened = await open();
  });
  afterAll(close);
  return () => {
    if (!opened) throw new Error('it is open only within tests');
    return opened;
  };
}

type FileApp = {
  readonly url: string;
  readonly database: string;
  /** Does this whenever the app has an empty ledger: before the tests, and after a failed one. */
  prepare(work: () => Promise<unknown>): void;
};

/**
 * One app for a whole test file; its upstream is unreachable, so that no status changes by itself.
 * `fill`: creates its ledger.
 */
export function useApp({
  fill,
  start = openApp,
  ...setting
}: Partial<AppSetting> & {
  fill?: (database: string) => void;
  start?: (setting: AppSetting) => Promise<Pick<App, 'url' | 'close'>>;
} = {}): FileApp {
  const running = { url: '', database: '' };
  const preparations: (() => Promise<unknown>)[] = [];
  useOpened(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dawatch-test-'));
    running.database = join(folder, 'ledger.db');
    fill?.(running.database);
    const app = await start({ database: running.database, ...setting });
    running.url = app.url;
    for (const prepare of preparations) await prepare();
    return {
      async close() {
        await app.close();
        rmSync(folder, { recursive: true });
      },
    };
  });
  return Object.assign(running, {
    prepare: (work: () => Promise<unknown>) => void preparations.push(work),
  });
}

/** One app with a sandbox for a whole test file. A submission is final within about a second. */
export function useAppWithSandbox(setting: Partial<AppSetting> = {}): FileApp & {
  readonly sandbox: Sandbox;
  /** Creates a submission at the upstream, which the app does not track. */
  submit(): string;
} {
  let sandbox: Sandbox | undefined;
  const present = () => {
    if (!sandbox) throw new Error('the sandbox runs only within tests');
    return sandbox;
  };
  const app = useApp({
    ...setting,
    async start(all) {
      sandbox = await startSandbox({ options: { speed: 200 } });
      const { url, close } = await openApp({ upstreamUrl: sandbox.url, ...all });
      return { url, close: () => close().then(present().close) };
    },
  });
  return {
    get url() {
      return app.url;
    },
    get database() {
      return app.database;
    },
    prepare: app.prepare,
    get sandbox() {
      return present();
    },
    submit: () => present().model.submit('some data', Date.now()),
  };
}
