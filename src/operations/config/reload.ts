import { isDeepStrictEqual } from 'node:util';
import type { Actor } from '../../lib/actor.ts';
import { ConfigError, type LoadedConfig, valuesOf } from './load.ts';
import type { Config } from './schema.ts';

/** The settings that a running process applies. The other ones need a restart. */
const APPLIED = {
  server:
    /^(?:log\.level|server\.public_url|auth\..+|sessions\..+|oidc\..+|heartbeat\..+|upstreams\.[^.]+\.(?:api_key|bearer|budget\..+)|channels\..+|routes)$/,
  worker: /^(?:log\.level|upstreams\.[^.]+\.api_key)$/,
} as const;

/** The settings that matter to a process. */
const USED = {
  server: /^/,
  worker:
    /^(?:log\..+|upstreams\.[^.]+\.(?:url|api_key|timeout_s)|redis\..+|worker\..+|server\.shutdown_s)$/,
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

const SETTLE_MS = 200;
const MAX_READS = 25;

/**
 * Loads the settings until two loads in a row, 200 ms apart, agree: files may be written, or
 * replaced one after the other, meanwhile. Throws the ConfigError in which both agree, or another
 * one after 5 s without agreement.
 */
export async function loadSettled(
  load: () => LoadedConfig,
  wait: (ms: number) => Promise<void>,
): Promise<LoadedConfig> {
  let before = attempt(load);
  for (let reads = 1; reads < MAX_READS; reads++) {
    await wait(SETTLE_MS);
    const now = attempt(load);
    if (isDeepStrictEqual(before, now)) {
      if ('problems' in now) throw new ConfigError(now.problems);
      return now.loaded;
    }
    before = now;
  }
  throw new ConfigError(['the files keep changing: reload again when they are complete']);
}

function attempt(
  load: () => LoadedConfig,
): { loaded: LoadedConfig } | { problems: readonly string[] } {
  try {
    return { loaded: load() };
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems };
    throw error;
  }
}

/** Reloads the settings. Rejects if the result cannot be audited; then nothing was applied. */
export type Reload = (actor: Actor) => Promise<ReloadResult>;
