import { realPath } from '../../ledger/open.ts';
import { redactorOf } from '../../lib/text.ts';
import { type LoadedConfig, secretsOf } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { checkNodes } from './chain.ts';
import { type Finding, problem } from './finding.ts';
import {
  checkDisk,
  checkIntegrity,
  checkLedger,
  type FinalBlock,
  inspectLedger,
  type LedgerInspection,
} from './ledger.ts';
import { checkAddress, checkMail, checkProvider, checkWebhook } from './receivers.ts';
import { checkCredentials, checkSettings } from './settings.ts';
import { checkBearer, checkUpstream } from './upstream.ts';

/** A check of one subject, with its own time limits. */
type Check = { name: string; run: () => Finding[] | Promise<Finding[]> };

export type DoctorOptions = {
  loaded: LoadedConfig;
  now: number;
  /** Also reads all of the ledger, which can take long. */
  full: boolean;
  /** Time limit of a connection or a response. */
  limitMs: number;
  /** Return the checks of optional features; undefined if the feature is not configured. */
  features: readonly ((config: Config, limitMs: number) => Check | undefined)[];
};

/**
 * Checks everything that a server with these settings needs and returns the findings in a fixed
 * order. Changes nothing; never rejects.
 */
export async function runDoctor(options: DoctorOptions): Promise<Finding[]> {
  const { loaded, now, full } = options;
  const path = realPath(loaded.config.database);
  const seen = inspectLedger(loaded.config.database, now);
  const found = await Promise.all(checksOf(options, path, seen).map(runCheck));
  const findings = found.flat();
  // Last, because it blocks the event loop, and the other checks have time limits.
  // A file of another version or program may have other tables.
  if (full && (seen.kind === 'current' || isDamaged(seen))) findings.push(checkIntegrity(path));
  // An upstream may quote the key that it refuses.
  const redact = redactorOf(secretsOf(loaded.settings));
  return findings.map((finding) => ({
    ...finding,
    message: redact(finding.message),
    action: finding.action && redact(finding.action),
  }));
}

function isDamaged(seen: LedgerInspection): boolean {
  return seen.kind === 'refused' && seen.problem === 'corrupt';
}

function checksOf(options: DoctorOptions, path: string, seen: LedgerInspection): Check[] {
  const { loaded, limitMs, features } = options;
  const { config } = loaded;
  const webhooks = seen.kind === 'current' ? seen.webhooks : [];
  const checks: Check[] = [
    { name: 'settings', run: () => checkSettings(loaded) },
    { name: 'credentials', run: () => checkCredentials(config, seen) },
  ];
  if (config.oidc.issuer !== undefined)
    checks.push({ name: 'oidc', run: () => checkProvider(config, limitMs) });
  for (const [name, upstream] of Object.entries(config.upstreams)) {
    const { url } = upstream;
    if (url === undefined) continue;
    const run = () => checkUpstream(name, { ...upstream, url }, limitMs);
    checks.push({ name: `upstream.${name}`, run });
    if (upstream.chain.urls.length > 0) {
      const finals = finalsOf(name, seen);
      const runChain = () =>
        checkNodes({ name, settings: upstream.chain, finals, now: options.now, limitMs });
      checks.push({ name: `chain.${name}`, run: runChain });
    }
  }
  const { url, bearer } = config.upstreams.default;
  if (url !== undefined && bearer !== undefined) {
    const run = () => checkBearer({ ...config.upstreams.default, url, bearer }, limitMs);
    checks.push({ name: 'users.default', run });
  }
  checks.push({ name: 'ledger', run: () => checkLedger(config.database, path, seen) });
  checks.push({ name: 'disk', run: () => [checkDisk(path)] });
  checks.push(...features.flatMap((checkOf) => checkOf(config, limitMs) ?? []));
  for (const webhook of webhooks) {
    const run = () => checkWebhook(webhook, { webhooks: config.webhooks, limitMs });
    checks.push({ name: `webhook.${webhook.id}`, run });
  }
  const addAddress = (name: string, setting: string, address: string) =>
    checks.push({ name, run: () => checkAddress(name, { url: address, setting, limitMs }) });
  for (const [name, channel] of Object.entries(config.channels))
    if (channel.type === 'email') {
      const run = () => checkMail(name, { settings: channel, limitMs });
      checks.push({ name: `channel.${name}`, run });
    } else addAddress(`channel.${name}`, `channels.${name}.url`, channel.url);
  if (config.heartbeat.url !== undefined)
    addAddress('heartbeat', 'heartbeat.url', config.heartbeat.url);
  return checks;
}

const MAX_FINALS = 5;

/** Returns the blocks of an upstream's newest finalized submissions, each once. */
function finalsOf(name: string, seen: LedgerInspection): FinalBlock[] {
  const finals = seen.kind === 'current' ? seen.finals : [];
  const byHash = new Map(
    finals.filter(({ upstream }) => upstream === name).map((block) => [block.blockHash, block]),
  );
  return [...byHash.values()].slice(0, MAX_FINALS);
}

/** A check that fails hides no other finding. */
async function runCheck({ name, run }: Check): Promise<Finding[]> {
  try {
    return await run();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return [problem(name, `the check failed: ${message}`, 'report this defect of dawatch')];
  }
}
