import { statSync } from 'node:fs';
import { type LoadedConfig, type Setting, variableOf } from '../config/load.ts';
import { ENVIRONMENT } from '../config/schema.ts';
import { isSecret } from '../config/secret-files.ts';
import { type Finding, ok, problem, reported, warning } from './finding.ts';

const OPEN_TO_OTHERS = 0o007;

/** Checks valid settings for gaps and risks. */
export function checkSettings(
  { config, settings, file }: LoadedConfig,
  env: Record<string, string | undefined>,
): Finding[] {
  const set = settings.filter(({ source }) => source !== 'default');
  const isInFile = ({ source }: Setting) => file !== undefined && source.startsWith(file);
  const from = [set.some(isInFile) && file, !set.every(isInFile) && 'the environment'].filter(
    Boolean,
  );
  const unusable = Object.entries(config.upstreams).filter(
    ([name, { url }]) => name !== 'default' && url === undefined,
  );
  const isWithout = Object.values(config.upstreams).every(({ url }) => url === undefined);
  const hasSecrets = set.some(({ source, path }) => source === file && isSecret(path));
  return reported(
    ok(
      'settings',
      set.length === 0 ? 'all defaults' : `${set.length} set, in ${from.join(' and ')}`,
    ),
    ...unusable.map(([name]) =>
      problem(
        'settings',
        `upstreams.${name} has no url`,
        `set upstreams.${name}.url, or remove the upstream`,
      ),
    ),
    isWithout &&
      problem(
        'settings',
        'no upstream is configured',
        'set DAWATCH_UPSTREAM_URL and DAWATCH_UPSTREAM_API_KEY; `dawatch demo` works without an upstream',
      ),
    ...emptyVariables(env),
    file !== undefined &&
      hasSecrets &&
      (statSync(file).mode & OPEN_TO_OTHERS) !== 0 &&
      warning(
        'settings',
        `all users of this machine may read ${file}, which contains secrets`,
        `chmod o-rwx ${file}, or set secrets in the environment or in files of their own`,
      ),
  );
}

/** Warns of empty variables, which are treated as not set. */
function emptyVariables(env: Record<string, string | undefined>): Finding[] {
  return Object.keys(ENVIRONMENT)
    .filter((name) => env[name] === '')
    .map((name) =>
      warning(
        'settings',
        `${name} is empty and treated as not set`,
        'set its value, or unset the variable',
      ),
    );
}

/** Returns the name of a setting, with its environment variable if it has one. */
export function settingName(path: string): string {
  const variable = variableOf(path);
  return variable === null ? path : `${variable} (${path})`;
}
