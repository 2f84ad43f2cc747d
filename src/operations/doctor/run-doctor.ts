import { realPath } from '../../ledger/open.ts';
import { redactorOf } from '../../lib/redaction.ts';
import { type LoadedConfig, type Setting, secretsOf } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { isSecret } from '../config/secret-files.ts';
import { checkCredentials } from './credentials.ts';
import { checkDisk } from './disk.ts';
import type { Finding } from './finding.ts';
import { inspectLedger } from './inspect-ledger.ts';
import { checkLedger, checkLedgerIntegrity } from './ledger.ts';
import { checkMachine } from './machine.ts';
import { checkProvider } from './oidc.ts';
import { checkCallbacks, checkChannel, checkHeartbeat, checkWebhook } from './receivers.ts';
import { type Check, runChecks } from './run-checks.ts';
import { checkSettings } from './settings.ts';
import { checkUpstream } from './upstream.ts';
import { checkBearer } from './upstream-users.ts';

export type DoctorOptions = {
  loaded: LoadedConfig;
  env: Record<string, string | undefined>;
  now: number;
  /** Also verifies the indexes of the ledger, which can take long. */
  full: boolean;
  /** Time limit of a connection or a response. */
  limitMs: number;
  /** Return the checks of optional features; undefined if the feature is not configured. */
  features: readonly ((
    config: Config,
    limitMs: number,
  ) => { name: string; run: () => Promise<Finding[]> } | undefined)[];
  /** Receive the names of all checks at the start, and of each completed check. */
  onBegin: (names: readonly string[]) => void;
  onEnded: (name: string) => void;
};

const QUICK_LIMIT_MS = 60_000;
const FULL_LIMIT_MS = 24 * 3_600_000;
/**
 * Added to the limits of connection and response, so that their own, more specific timeouts are
 * reported.
 */
const MARGIN_MS = 1_000;

/**
 * Checks everything that a server with these settings needs and returns the findings. Changes
 * nothing; never rejects.
 */
export async function runDoctor(options: DoctorOptions): Promise<Finding[]> {
  const checks = checksOf(options);
  options.onBegin(checks.map(({ name }) => name));
  return withoutSecrets(await runChecks(checks, options.onEnded), options.loaded.settings);
}

function checksOf({ loaded, env, now, full, limitMs, features }: DoctorOptions): Check[] {
  const { config } = loaded;
  const file = config.database;
  const path = realPath(file);
  const seen = inspectLedger(file, now);
  const dead = seen.kind === 'current' ? seen.deadLetters : new Map<string, number>();
  const webhooks = seen.kind === 'current' ? seen.webhooks : [];
  const networkCheck = (name: string, run: (signal: AbortSignal) => Promise<Finding[]>): Check => ({
    name,
    limitMs: 2 * limitMs + MARGIN_MS,
    run,
  });
  const localCheck = (name: string, run: () => Finding[]): Check => ({ name, limitMs, run });
  const integrityCheck = (name: string, ledger: string): Check => ({
    name,
    limitMs: full ? FULL_LIMIT_MS : QUICK_LIMIT_MS,
    run: (signal) => checkLedgerIntegrity(ledger, { full, signal }),
  });
  const { bearer, url: defaultUrl } = config.upstreams.default;
  const { url: heartbeatUrl } = config.heartbeat;
  return [
    localCheck('node', () => checkMachine()),
    localCheck('settings', () => checkSettings(loaded, env)),
    localCheck('credentials', () => checkCredentials(config, seen)),
    ...(config.oidc.issuer === undefined
      ? []
      : [networkCheck('oidc', () => checkProvider(config, limitMs))]),
    ...Object.entries(config.upstreams).flatMap(([name, upstream]) => {
      const { url } = upstream;
      if (url === undefined) return [];
      return networkCheck(`upstream.${name}`, (signal) =>
        checkUpstream({ name, upstream: { ...upstream, url }, limitMs, signal }),
      );
    }),
    ...(defaultUrl !== undefined && bearer !== undefined
      ? [
          networkCheck('users.default', (signal) =>
            checkBearer(
              { ...config.upstreams.default, url: defaultUrl, bearer },
              { limitMs, signal },
            ),
          ),
        ]
      : []),
    localCheck('ledger', () => checkLedger(file, path, seen)),
    ...(seen.kind === 'missing' ? [] : [integrityCheck('ledger.integrity', file)]),
    localCheck('disk', () => checkDisk(path)),
    ...features.flatMap((checkOf) => {
      const check = checkOf(config, limitMs);
      return check ? networkCheck(check.name, check.run) : [];
    }),
    ...webhooks.map((webhook) =>
      networkCheck(`webhook.${webhook.id}`, (signal) =>
        checkWebhook(webhook, { webhooks: config.webhooks, dead, limitMs, signal }),
      ),
    ),
    localCheck('webhook.callbacks', () => checkCallbacks(dead)),
    ...Object.entries(config.channels).map(([name, channel]) =>
      networkCheck(`channel.${name}`, (signal) =>
        checkChannel(name, channel, { dead, limitMs, signal }),
      ),
    ),
    ...(heartbeatUrl === undefined
      ? []
      : [networkCheck('heartbeat', (signal) => checkHeartbeat(heartbeatUrl, { limitMs, signal }))]),
  ];
}

const MASK = '********';
/** Shorter secrets are not masked, because they would match ordinary text. */
const MIN_CHARS = 4;

/** Masks secrets in findings, because an upstream may quote the key that it refuses. */
export function withoutSecrets(
  findings: readonly Finding[],
  settings: readonly Setting[],
): Finding[] {
  const secrets = [...secretsOf(settings), ...pathsOf(settings)].sort(
    (a, b) => b.length - a.length,
  );
  const short = secrets.filter((secret) => secret.length >= MIN_CHARS);
  const redact = redactorOf(secrets, MASK);
  const mask = (text: string) =>
    short.reduce((masked, secret) => masked.replaceAll(secret, MASK), redact(text));
  return findings.map((finding) => ({
    ...finding,
    message: mask(finding.message),
    action: finding.action && mask(finding.action),
  }));
}

/** Returns the paths of secret addresses, which may be keys. Their hosts are not secret. */
function pathsOf(settings: readonly Setting[]): string[] {
  return settings.flatMap(({ path, value }) =>
    isSecret(path) ? (URL.parse(String(value))?.pathname ?? []) : [],
  );
}
