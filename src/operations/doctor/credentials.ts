import { isLoopback } from '../../lib/addresses.ts';
import type { Config } from '../config/schema.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import type { LedgerInspection } from './inspect-ledger.ts';
import { settingName } from './settings.ts';
import { weaknessOf } from './weak-secret.ts';

/**
 * Checks that clients can authenticate: without any credential, the server only listens on a
 * loopback address.
 */
export function checkCredentials(
  { auth, oidc, server }: Config,
  seen: LedgerInspection,
): Finding[] {
  const isSet = auth.api_key !== undefined || auth.admin_token !== undefined;
  if (isSet) return [ok('credentials', 'set'), ...checkStrength(auth)];
  if (seen.kind === 'current' && seen.hasCredential) return [ok('credentials', 'in the ledger')];
  if (oidc.issuer !== undefined)
    return [ok('credentials', 'only those of the provider; clients need a token')];
  if (seen.kind === 'refused' || (seen.kind === 'older' && seen.found > 0)) return [];
  if (isLoopback(server.host))
    return [ok('credentials', 'none yet: the first start creates a service key and prints it')];
  const advice =
    'set DAWATCH_API_KEY (at least 16 characters), or, if the ledger exists, create a token with `dawatch token create`';
  return [
    problem('credentials', `none, so the server refuses to listen on ${server.host}`, advice),
  ];
}

/**
 * Checks whether credentials in the settings look chosen by a person and are therefore guessable.
 */
function checkStrength({ api_key, admin_token }: Config['auth']): Finding[] {
  const weak = Object.entries({ api_key, admin_token }).flatMap(([name, secret]) => {
    const weakness = secret === undefined ? undefined : weaknessOf(secret);
    if (weakness === undefined) return [];
    const role = name === 'api_key' ? 'service' : 'admin';
    const action = `use a token of \`dawatch token create --role ${role} --name …\` instead`;
    return [
      warning(
        'credentials',
        `${settingName(`auth.${name}`)} does not look random: ${weakness}`,
        action,
      ),
    ];
  });
  if (api_key === undefined || api_key !== admin_token) return weak;
  const both = `${settingName('auth.api_key')} and ${settingName('auth.admin_token')}`;
  const conflict = `${both} are identical, so that the admin token has the role service`;
  return [...weak, problem('credentials', conflict, 'set two different values')];
}
