import { isDeepStrictEqual } from 'node:util';
import type { AuditTrail } from '../../access/audit-store.ts';
import type { Actor } from '../../lib/actor.ts';
import type { Clock } from '../../lib/clock.ts';
import { escapeText } from '../../lib/text.ts';
import type { Log } from '../logging/logger.ts';
import { ConfigError, type LoadedConfig, valuesOf } from './load.ts';
import type { Config } from './schema.ts';
import { StartError } from './start-error.ts';

/** The settings that a running process applies. The other ones need a restart. */
const APPLIED = {
  server:
    /^(?:log\.level|server\.public_url|auth\..+|sessions\..+|oidc\..+|heartbeat\..+|upstreams\.[^.]+\.(?:api_key|bearer|headers|headers\..+|budget\..+|chain\..+)|channels\..+|routes)$/,
  worker: /^(?:log\.level|upstreams\.[^.]+\.(?:api_key|headers\..+))$/,
} as const;

/** The settings that matter to a process. */
const USED = {
  server: /^/,
  worker:
    /^(?:log\..+|upstreams\.[^.]+\.(?:url|api_key|headers\..+|timeout_s)|redis\..+|worker\..+|server\.shutdown_s)$/,
} as const;

export type ReloadingProcess = keyof typeof APPLIED;

/** Whether a running server applies a change of this setting. */
export function isReloadable(path: string): boolean {
  return APPLIED.server.test(path);
}

/**
 * Returns the names of the settings of a process that differ, and those of them that need a
 * restart.
 */
export function compareSettings(before: Config, after: Config, process: ReloadingProcess) {
  const [old, current] = [valuesOf(before), valuesOf(after)];
  const changes = [...new Set([...old.keys(), ...current.keys()])]
    .filter(
      (path) => USED[process].test(path) && !isDeepStrictEqual(old.get(path), current.get(path)),
    )
    .sort();
  // With a bearer the server sends its own token, without one that of the caller: these are
  // different routes.
  const isSwitched = (path: string) =>
    path.endsWith('.bearer') && (old.get(path) === undefined) !== (current.get(path) === undefined);
  const needRestart = changes.filter((path) => !APPLIED[process].test(path) || isSwitched(path));
  return { changes, needRestart };
}

/** `changes`: names of settings, sorted. */
export type ReloadResult =
  | { kind: 'reloaded'; changes: string[] }
  | { kind: 'refused'; reason: string };

/** Reloads the settings. Rejects if the result cannot be audited; then nothing was applied. */
export type Reload = (actor: Actor) => Promise<ReloadResult>;

const MAX_TEXT_CHARS = 2_000;

export const BY_SIGNAL: Actor = { name: 'SIGHUP', credentialId: null, address: null };

/** Where a reload gets the settings. */
export type SettingsSource = {
  /**
   * Loads the settings again, from the same files and variables as at the start. Throws
   * ConfigError.
   */
  load: () => LoadedConfig;
  /** Called with the settings in force after a change. */
  onApplied: (loaded: LoadedConfig) => void;
};

/** `apply` must not throw. */
type PreparedSettings = { apply: () => void };

type ReloadDeps = {
  process: ReloadingProcess;
  /** The settings in force. */
  config: Config;
  /** Undefined: the settings cannot change. */
  source: SettingsSource | undefined;
  /** Performs all steps that may fail. Throws StartError. */
  prepare: (next: Config) => Promise<PreparedSettings> | PreparedSettings;
  /** Stores the result of a reload. If it throws, nothing is applied. */
  record?: (actor: Actor, result: ReloadResult) => void;
  log: Log;
};

/**
 * Applies changed settings to the running process: all of them or none. Reloads run one after the
 * other.
 */
export class SettingsReload {
  readonly #deps: ReloadDeps;
  #config: Config;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(deps: ReloadDeps) {
    this.#deps = deps;
    this.#config = deps.config;
  }

  /** The settings in force. */
  get config(): Config {
    return this.#config;
  }

  /** Rejects if the result cannot be recorded; then nothing was applied. */
  reload(actor: Actor): Promise<ReloadResult> {
    const result = this.#last.then(() => this.#reload(actor));
    this.#last = result.catch((err) =>
      this.#deps.log.error(
        { ...fieldsOf(actor), reason: 'failed', err },
        'settings.reload_refused',
      ),
    );
    return result;
  }

  /** Refuses all further reloads, and the one that runs. */
  close(): void {
    this.#isClosed = true;
  }

  async #reload(actor: Actor): Promise<ReloadResult> {
    const { source, record, log } = this.#deps;
    const prepared = await this.#prepare().catch((error: unknown) => {
      if (error instanceof ConfigError) return { refused: error.problems.join('; ') };
      if (error instanceof StartError) return { refused: error.message };
      throw error;
    });
    const refused = this.#isClosed
      ? 'the process is stopping'
      : 'refused' in prepared
        ? prepared.refused
        : undefined;
    if (refused !== undefined || 'refused' in prepared) {
      const result = { kind: 'refused', reason: refused ?? '' } as const;
      log.error(
        { ...fieldsOf(actor), reason: escapeText(result.reason, MAX_TEXT_CHARS) },
        'settings.reload_refused',
      );
      if (!this.#isClosed) record?.(actor, result);
      return result;
    }
    const { loaded, changes, apply } = prepared;
    const result = { kind: 'reloaded', changes } as const;
    if (changes.length > 0) record?.(actor, result);
    const write = () =>
      log.info({ ...fieldsOf(actor), changes: changes.join(', ') || 'none' }, 'settings.reloaded');
    // Written at the level before the change or at the one after it.
    const wasWritten = log.isLevelEnabled('info');
    if (wasWritten) write();
    if (changes.length > 0) {
      source?.onApplied(loaded);
      apply();
      this.#config = loaded.config;
    }
    if (!wasWritten) write();
    return result;
  }

  async #prepare() {
    const { process, config, source, prepare } = this.#deps;
    const loaded = source?.load() ?? { config, settings: [], file: undefined };
    const { changes, needRestart } = compareSettings(this.#config, loaded.config, process);
    if (needRestart.length > 0)
      throw new StartError(`a restart is needed to change ${needRestart.join(', ')}`);
    return { loaded, changes, ...(await prepare(loaded.config)) };
  }
}

/** Returns a function that stores the result of a reload in the audit. Throws LedgerError. */
export function auditReload({ audit }: { audit: AuditTrail }, clock: Clock) {
  return (actor: Actor, result: ReloadResult): void =>
    audit.append(actor, clock.now(), {
      action: 'settings.reload',
      result: result.kind,
      detail: escapeText(
        result.kind === 'refused' ? result.reason : result.changes.join(', '),
        MAX_TEXT_CHARS,
      ),
    });
}

function fieldsOf({ name, address }: Actor) {
  return { caller: name, ...(address !== null && { address }) };
}
