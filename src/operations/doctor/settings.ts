import { statSync } from 'node:fs';
import { isLoopback } from '../../lib/addresses.ts';
import type { LoadedConfig, Setting } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { isSecret } from '../config/settings-file.ts';
import { type Finding, ok, problem, reported, settingName, warning } from './finding.ts';
import type { LedgerInspection } from './ledger.ts';

const OPEN_TO_OTHERS = 0o007;

/** Checks valid settings for gaps and risks. */
export function checkSettings({ config, settings, file }: LoadedConfig): Finding[] {
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

/**
 * Checks that clients can authenticate: without any credential, the server only listens on a
 * loopback address.
 */
export function checkCredentials(
  { auth, oidc, server }: Config,
  seen: LedgerInspection,
): Finding[] {
  const isSet = auth.api_key !== undefined || auth.admin_token !== undefined;
  if (isSet) return [ok('credentials', 'set'), ...checkEqualKeys(auth)];
  if (seen.kind === 'current' && seen.hasCredential) return [ok('credentials', 'in the ledger')];
  if (oidc.issuer !== undefined)
    return [ok('credentials', 'only those of the provider; clients need a token')];
  if (seen.kind === 'refused' || (seen.kind === 'older' && seen.found > 0)) return [];
  if (isLoopback(server.host))
    return [ok('credentials', 'none yet: the first start creates a service key and prints it')];
  const advice =
    'set DAWATCH_API_KEY (at least 32 characters), or, if the ledger exists, create a token with `dawatch token create`';
  return [
    problem('credentials', `none, so the server refuses to listen on ${server.host}`, advice),
  ];
}

/** A key has one role: with the same value, the role of one of the settings has no effect. */
function checkEqualKeys({ api_key, admin_token }: Config['auth']): Finding[] {
  if (api_key === undefined || api_key !== admin_token) return [];
  const both = `${settingName('auth.api_key')} and ${settingName('auth.admin_token')}`;
  const message = `${both} are identical, so that the admin token has the role service`;
  return [problem('credentials', message, 'set two different values')];
}
