import type { LoadedConfig } from '../config/load.ts';
import { realPath } from '../ledger/file/open.ts';
import { inspectLedger } from '../ledger/maintenance/inspect.ts';
import { checkCredentials } from './credentials.ts';
import { checkDisk } from './disk.ts';
import type { Finding } from './finding.ts';
import { checkLedger, checkLedgerIntegrity } from './ledger.ts';
import { checkMachine } from './machine.ts';
import { checkCallbacks, checkChannel, checkWebhook } from './receivers.ts';
import { checkRedis } from './redis.ts';
import { type Check, runChecks } from './run-checks.ts';
import { withoutSecrets } from './secrets.ts';
import { checkSettings } from './settings.ts';
import { checkUpstream } from './upstream.ts';
import { checkBearer } from './upstream-users.ts';

export type DoctorOptions = {
  loaded: LoadedConfig;
  env: Record<string, string | undefined>;
  now: number;
  /** Reads the ledger's indexes too, however long that takes. */
  full: boolean;
  /** For each of the checks that ask somebody. */
  limitMs: number;
  /** Told which checks there are, and of each that ends. */
  onBegin: (names: readonly string[]) => void;
  onEnded: (name: string) => void;
};

const QUICK_LIMIT_MS = 60_000;
const FULL_LIMIT_MS = 24 * 3_600_000;
/** Beyond the time that a connection or an answer is given by itself, so that its own sentence is heard. */
const MARGIN_MS = 1_000;

/** Looks at everything that a server with these settings needs, and changes nothing. Never rejects. */
export async function runDoctor(examination: DoctorOptions): Promise<Finding[]> {
  const checks = checksOf(examination);
  examination.onBegin(checks.map(({ name }) => name));
  return withoutSecrets(await runChecks(checks, examination.onEnded), examination.loaded.settings);
}

function checksOf({ loaded, env, now, full, limitMs }: DoctorOptions): Check[] {
  const { config } = loaded;
  const file = config.database;
  const path = realPath(file);
  const seen = inspectLedger(file, now);
  const dead = seen.kind === 'current' ? seen.deadLetters : new Map<string, number>();
  const webhooks = seen.kind === 'current' ? seen.webhooks : [];
  const asking = (name: string, run: (signal: AbortSignal) => Promise<Finding[]>): Check => ({
    name,
    limitMs: 2 * limitMs + MARGIN_MS,
    run,
  });
  const atOnce = (name: string, run: () => Finding[]): Check => ({ name, limitMs, run });
  const { url: redisUrl, secret } = config.redis;
  const { bearer, url: defaultUrl } = config.upstreams.default;
  return [
    atOnce('node', () => checkMachine()),
    atOnce('settings', () => checkSettings(loaded, env)),
    atOnce('credentials', () => checkCredentials(config, seen)),
    ...Object.entries(config.upstreams).flatMap(([name, upstream]) => {
      const { url } = upstream;
      if (url === undefined) return [];
      return asking(`upstream.${name}`, (signal) =>
        checkUpstream({ name, upstream: { ...upstream, url }, limitMs, signal }),
      );
    }),
    ...(defaultUrl !== undefined && bearer !== undefined
      ? [
          asking('users.default', (signal) =>
            checkBearer({ ...config.upstreams.default, url: defaultUrl, bearer }, { limitMs, signal }),
          ),
        ]
      : []),
    atOnce('ledger', () => checkLedger(file, path, seen)),
    ...(seen.kind === 'missing'
      ? []
      : [
          {
            name: 'ledger.integrity',
            limitMs: full ? FULL_LIMIT_MS : QUICK_LIMIT_MS,
            run: (signal: AbortSignal) => checkLedgerIntegrity(file, { full, signal }),
          },
        ]),
    atOnce('disk', () => checkDisk(path)),
    ...(redisUrl === undefined ? [] : [asking('redis', () => checkRedis({ url: redisUrl, secret }, limitMs))]),
    ...webhooks.map((webhook) =>
      asking(`webhook.${webhook.id}`, (signal) =>
        checkWebhook(webhook, { webhooks: config.webhooks, dead, limitMs, signal }),
      ),
    ),
    atOnce('webhook.callbacks', () => checkCallbacks(dead)),
    ...Object.entries(config.channels).map(([name, channel]) =>
      asking(`channel.${name}`, (signal) => checkChannel(name, channel, { dead, limitMs, signal })),
    ),
  ];
}
