import { setMaxListeners } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { realPath } from '../../ledger/open.ts';
import { redactorOf } from '../../lib/redaction.ts';
import { type LoadedConfig, type Setting, secretsOf } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { isSecret } from '../config/settings-file.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { checkDisk, checkLedger, checkLedgerIntegrity, inspectLedger } from './ledger.ts';
import {
  checkCallbacks,
  checkChannel,
  checkHeartbeat,
  checkProvider,
  checkWebhook,
} from './receivers.ts';
import { checkCredentials, checkSettings } from './settings.ts';
import { checkBearer, checkUpstream } from './upstream.ts';

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

/**
 * An independent check. It is abandoned after `limitMs`; `run` should end when its signal aborts.
 */
export type Check = {
  name: string;
  limitMs: number;
  run(signal: AbortSignal): Finding[] | Promise<Finding[]>;
};

/**
 * Runs all checks concurrently and returns their findings in order. Never rejects and respects
 * every limit.
 */
export async function runChecks(
  checks: readonly Check[],
  onEnded: (name: string) => void,
): Promise<Finding[]> {
  const findings = await Promise.all(
    checks.map(async (check) => {
      const found = await runOne(check);
      onEnded(check.name);
      return found;
    }),
  );
  return findings.flat();
}

async function runOne({ name, limitMs, run }: Check): Promise<Finding[]> {
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding[]>((resolve) => {
    timer = setTimeout(() => {
      resolve([
        warning(name, `not completed within ${limitMs / 1_000} s`, 'try again under less load'),
      ]);
      over.abort();
    }, limitMs);
  });
  try {
    return await Promise.race([Promise.resolve().then(() => run(over.signal)), late]);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return [problem(name, `the check failed: ${message}`, 'report this defect of dawatch')];
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}

/** Each client connection and each receiver uses one descriptor. */
const MIN_OPEN_FILES = 4_096;

export function checkMachine(
  { nodeVersion, openFiles } = { nodeVersion: process.versions.node, openFiles: openFilesLimit() },
): Finding[] {
  // Every command refuses versions that are too old.
  const node = ok('node', `Node ${nodeVersion}`);
  if (openFiles === undefined) return [node];
  const files = `limit of ${openFiles} open files and connections`;
  const isFew = openFiles !== 'unlimited' && openFiles < MIN_OPEN_FILES;
  const advice = `raise the limit to at least ${MIN_OPEN_FILES}: ulimit -n, or LimitNOFILE of systemd`;
  return [node, isFew ? warning('open_files', files, advice) : ok('open_files', files)];
}

/** Returns the soft limit of open files, or undefined if the system does not report it. */
function openFilesLimit(): number | 'unlimited' | undefined {
  const file = '/proc/self/limits';
  const limits = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const soft = /^Max open files +(\d+|unlimited)/m.exec(limits)?.[1];
  return soft === undefined || soft === 'unlimited' ? soft : Number(soft);
}
