import { statSync } from 'node:fs';
import { isSecret, type LoadedConfig, variableOf } from '../config/load.ts';
import { ENVIRONMENT } from '../config/schema.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const OPEN_TO_OTHERS = 0o007;

/** What can be said of the settings once they could be read. */
export function checkSettings({ config, settings }: LoadedConfig, env: Record<string, string | undefined>): Finding[] {
  const set = settings.filter(({ source }) => source !== 'default');
  const sources = [...new Set(set.map(({ source }) => source))].filter((source) => !Object.hasOwn(ENVIRONMENT, source));
  const from = [
    ...sources,
    ...(set.some(({ source }) => Object.hasOwn(ENVIRONMENT, source)) ? ['the environment'] : []),
  ];
  const unusable = Object.entries(config.upstreams).filter(
    ([name, { url }]) => name !== 'default' && url === undefined,
  );
  const isWithout = Object.values(config.upstreams).every(({ url }) => url === undefined);
  return [
    ok('settings', set.length === 0 ? 'all by default' : `${set.length} set, in ${from.join(' and ')}`),
    ...unusable.map(([name]) =>
      problem('settings', `upstreams.${name} has no url`, `set upstreams.${name}.url, or take it out`),
    ),
    ...(isWithout
      ? [
          problem(
            'settings',
            'no upstream is set',
            'set DAWATCH_UPSTREAM_URL and DAWATCH_UPSTREAM_API_KEY; to try without one: dawatch demo',
          ),
        ]
      : []),
    ...emptyVariables(env),
    ...sources.flatMap((file) => {
      const holdsSecret = set.some(({ source, path }) => source === file && isSecret(path));
      return holdsSecret ? readableByOthers(file) : [];
    }),
  ];
}

/** Set, but to nothing, is as good as not set, and seldom what was meant. */
function emptyVariables(env: Record<string, string | undefined>): Finding[] {
  return Object.keys(ENVIRONMENT)
    .filter((name) => env[name] === '')
    .map((name) =>
      warning(
        'settings',
        `${name} is set, but empty: it counts as not set`,
        'look where its value should come from, or unset it',
      ),
    );
}

function readableByOthers(file: string): Finding[] {
  const isOpen = (statSync(file).mode & OPEN_TO_OTHERS) !== 0;
  const action = `chmod o-rwx ${file}, or give secrets in the environment`;
  return isOpen ? [warning('settings', `everybody on this machine may read ${file}, which holds secrets`, action)] : [];
}

/** A setting as people look for it. */
export function settingName(path: string): string {
  const variable = variableOf(path);
  return variable === null ? path : `${variable} (${path})`;
}
