import type { LoadedConfig } from '../config/load.ts';
import { realPath } from '../ledger/file/open.ts';
import { inspectLedger } from '../ledger/maintenance/inspect.ts';
import { examineCredentials } from './credentials.ts';
import { examineDisk } from './disk.ts';
import type { Finding } from './finding.ts';
import { examineIntegrity, examineLedger } from './ledger.ts';
import { examineMachine } from './machine.ts';
import { examineCallbacks, examineChannel, examineWebhook } from './receivers.ts';
import { examineRedis } from './redis.ts';
import { type Check, runChecks } from './run-checks.ts';
import { withoutSecrets } from './secrets.ts';
import { examineSettings } from './settings.ts';
import { examineUpstream } from './upstream.ts';
import { examineBearer } from './upstream-users.ts';

export type Examination = {
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
export async function examine(examination: Examination): Promise<Finding[]> {
  const checks = checksOf(examination);
  examination.onBegin(checks.map(({ name }) => name));
  return withoutSecrets(await runChecks(checks, examination.onEnded), examination.loaded.settings);
}

function checksOf({ loaded, env, now, full, limitMs }: Examination): Check[] {
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
    atOnce('node', () => examineMachine()),
    atOnce('settings', () => examineSettings(loaded, env)),
    atOnce('credentials', () => examineCredentials(config, seen)),
    ...Object.entries(config.upstreams).flatMap(([name, upstream]) => {
      const { url } = upstream;
      if (url === undefined) return [];
      return asking(`upstream.${name}`, (signal) =>
        examineUpstream({ name, upstream: { ...upstream, url }, limitMs, signal }),
      );
    }),
    ...(defaultUrl !== undefined && bearer !== undefined
      ? [
          asking('users.default', (signal) =>
            examineBearer({ ...config.upstreams.default, url: defaultUrl, bearer }, { limitMs, signal }),
          ),
        ]
      : []),
    atOnce('ledger', () => examineLedger(file, path, seen)),
    ...(seen.kind === 'missing'
      ? []
      : [
          {
            name: 'ledger.integrity',
            limitMs: full ? FULL_LIMIT_MS : QUICK_LIMIT_MS,
            run: (signal: AbortSignal) => examineIntegrity(file, { full, signal }),
          },
        ]),
    atOnce('disk', () => examineDisk(path)),
    ...(redisUrl === undefined ? [] : [asking('redis', () => examineRedis({ url: redisUrl, secret }, limitMs))]),
    ...webhooks.map((webhook) =>
      asking(`webhook.${webhook.id}`, (signal) =>
        examineWebhook(webhook, { webhooks: config.webhooks, dead, limitMs, signal }),
      ),
    ),
    atOnce('webhook.callbacks', () => examineCallbacks(dead)),
    ...Object.entries(config.channels).map(([name, channel]) =>
      asking(`channel.${name}`, (signal) => examineChannel(name, channel, { dead, limitMs, signal })),
    ),
  ];
}
