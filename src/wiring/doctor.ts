import { existsSync, statfsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { accessChecks } from '../access/doctor.ts';
import { guarded, LedgerError } from '../ledger/errors.ts';
import { refuseUnusableFiles } from '../ledger/files.ts';
import { CommittedChanges, LedgerDatabase } from '../ledger/ledger-database.ts';
import { realPath, refuseUnsafe } from '../ledger/open.ts';
import { needsRecovery } from '../ledger/recovery.ts';
import { assertOwnSchema, schemaOf } from '../ledger/schema.ts';
import { openStaging, verifyLedger } from '../ledger/staging.ts';
import { systemClock } from '../lib/clock.ts';
import type { DeadLetters, Webhook } from '../notifications/delivery.ts';
import { receiverChecks } from '../notifications/doctor.ts';
import { EventRoutes, Outbox } from '../notifications/outbox.ts';
import { type ReceiverResults, Receivers } from '../notifications/receivers-store.ts';
import { Webhooks } from '../notifications/webhooks-store.ts';
import { secretsOf } from '../operations/config/load.ts';
import { StartError } from '../operations/config/start-error.ts';
import {
  type Check,
  type Finding,
  ok,
  problem,
  reported,
  runChecks,
  settingName,
  warning,
} from '../operations/doctor/finding.ts';
import { VERSION } from '../operations/version.ts';
import { upstreamChecks } from '../polling/doctor.ts';
import { openUpstreams, type Upstreams } from '../polling/upstreams.ts';
import { oddStateOf, UpstreamStore } from '../submissions/upstream.ts';
import type { Config, LoadedConfig } from './settings.ts';

export type DoctorOptions = {
  loaded: LoadedConfig;
  now: number;
  full: boolean;
  limitMs: number;
  /** Return the checks of optional features; undefined if the feature is not configured. */
  features: readonly ((config: Config, limitMs: number) => Check | undefined)[];
};

/** Returns the findings in a fixed order. Never rejects. */
export async function runDoctor(options: DoctorOptions): Promise<Finding[]> {
  const { loaded, now, full, limitMs, features } = options;
  const { config } = loaded;
  const path = realPath(config.database);
  const { webhooks, results, genesisHashes, states, finding, mayBeRead } = inspectLedger(
    config.database,
    now,
  );
  const checks: Check[] = [];
  let upstreams: Upstreams | undefined;
  try {
    upstreams = openUpstreams(config, { clock: systemClock, version: VERSION });
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    const [message = '', ...solution] = error.message.split(': ');
    const action = solution.join(': ').replaceAll('\n', ' ') || `set it, or remove the upstream`;
    checks.push({ name: 'settings', run: () => [problem('settings', message, action)] });
  }
  for (const [name, upstream] of upstreams?.named ?? [])
    checks.push(
      ...upstreamChecks(
        name,
        upstream,
        { genesisHash: genesisHashes.get(name) ?? null, file: config.database },
        limitMs,
      ),
    );
  checks.push(...accessChecks(config, upstreams?.userClient, limitMs));
  const recovery = warning(
    'ledger',
    `the last sync of ${config.database} failed; the next start replaces it by a verified copy`,
    'check the system log for disk errors, replace the disk, then start the server',
  );
  checks.push({
    name: 'ledger',
    run: () => reported(...states, finding, needsRecovery(path) && recovery),
  });
  checks.push({ name: 'disk', run: () => [checkDisk(path)] });
  checks.push(...features.flatMap((checkOf) => checkOf(config, limitMs) ?? []));
  checks.push(...receiverChecks(config, webhooks, results, limitMs));
  const findings = await runChecks(checks, secretsOf(loaded.settings));
  await upstreams?.close();
  // Last, because it blocks the event loop, and the other checks have time limits.
  return full && mayBeRead ? [...findings, checkIntegrity(path)] : findings;
}

type Inspection = {
  finding: Finding;
  genesisHashes: Map<string, string | null>;
  /** Those that dawatch does not know. */
  states: Finding[];
  /** At most `MAX_WEBHOOKS`. */
  webhooks: Webhook[];
  /** By destination. */
  results: Map<string, ReceiverResults>;
  /** A file of another version or program may have other tables. */
  mayBeRead: boolean;
};

const BUSY_MS = 2_000;
const MAX_WEBHOOKS = 1_000;

/**
 * With or without a server. Never throws, creates, migrates or changes a ledger. Without a server,
 * SQLite leaves two empty side files, which the next server reuses.
 */
function inspectLedger(file: string, now: number): Inspection {
  const path = realPath(file);
  const without = {
    ...{ webhooks: [], results: new Map(), genesisHashes: new Map(), states: [] },
    mayBeRead: false,
  };
  try {
    return guarded(file, () => {
      refuseUnusableFiles(path);
      refuseUnsafe(path);
      // Writes and locks a file.
      openStaging(join(nearestFolder(path), basename(path))).close();
      if (!existsSync(path))
        return {
          ...without,
          finding: ok('ledger', `${file} does not exist yet; the first start creates it`),
        };
      const db = new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_MS });
      try {
        assertOwnSchema(db, file);
        const { found, needed } = schemaOf(db);
        if (found === needed) {
          const stored = storedIn(new LedgerDatabase(db, file), now);
          return { ...stored, mayBeRead: true, finding: ok('ledger', `${file}, schema ${found}`) };
        }
        const message = `${file} has schema ${found}, this version of dawatch uses ${needed}`;
        const action = 'back it up (dawatch backup), then start this version, which migrates it';
        const isEmpty = found === 0;
        return {
          ...without,
          finding: isEmpty
            ? ok('ledger', `${file} is empty; the first start initializes it`)
            : warning('ledger', message, action),
        };
      } finally {
        db.close();
      }
    });
  } catch (error) {
    const isDamaged = error instanceof LedgerError && error.problem === 'corrupt';
    // Restoring a backup loses later data, so it is not advised for a file of a newer version.
    const action = isDamaged
      ? `restore a backup to ${file}, or verify ${settingName('database')}`
      : `verify ${settingName('database')}, the version of dawatch that wrote the file, and its permissions`;
    const message = error instanceof Error ? error.message : String(error);
    return { ...without, mayBeRead: isDamaged, finding: problem('ledger', message, action) };
  }
}

function storedIn(
  database: LedgerDatabase,
  now: number,
): Pick<Inspection, 'webhooks' | 'results' | 'genesisHashes' | 'states'> {
  const routes = new EventRoutes(database);
  const dead = new CommittedChanges<DeadLetters>(database);
  const outbox = new Outbox(database, { routes, dead });
  const receivers = new Receivers(database, routes);
  const { webhooks } = new Webhooks(database, { routes, outbox, dead, receivers }).list({
    ...{ limit: MAX_WEBHOOKS, now },
  });
  const genesisHashes = new UpstreamStore(database, outbox).genesisHashes();
  const action = 'ask its operator: only Finalized with a block_hash and no error is final';
  const states = [...genesisHashes.keys()].flatMap((name) => {
    const state = oddStateOf(database, name);
    return state === null ? [] : [warning(`upstream.${name}`, state, action)];
  });
  return { webhooks, results: receivers.results(), states, genesisHashes };
}

/** Reads all of the ledger, and blocks meanwhile. */
function checkIntegrity(path: string): Finding {
  try {
    verifyLedger(path, path);
    return ok('ledger.integrity', 'structure, constraints and hashes are valid');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const advice = 'stop the server, keep a copy of the file, and restore the last backup';
    return problem('ledger.integrity', message, advice);
  }
}

const PROBLEM_BYTES = 100e6;
const WARNING_BYTES = 1e9;

export function checkDisk(
  file: string,
  statfs: (path: string) => { bavail: number; bsize: number } = statfsSync,
): Finding {
  const folder = nearestFolder(file);
  const { bavail, bsize } = statfs(folder);
  const freeBytes = bavail * bsize;
  const message = `${(freeBytes / 1e9).toFixed(1)} GB free in ${folder}`;
  const action =
    'free disk space, or stop the server and move the ledger; with a full disk, no submissions can be tracked';
  if (freeBytes < PROBLEM_BYTES) return problem('disk', message, action);
  return freeBytes < WARNING_BYTES ? warning('disk', message, action) : ok('disk', message);
}

function nearestFolder(file: string): string {
  const folder = dirname(file);
  return existsSync(folder) || folder === dirname(folder) ? folder : nearestFolder(folder);
}
