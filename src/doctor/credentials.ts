import type { Config } from '../config/schema.ts';
import type { LedgerInspection } from '../ledger/maintenance/inspect.ts';
import { isLoopback } from '../platform/addresses.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { settingName } from './settings.ts';
import { weaknessOf } from './weak-secret.ts';

/** Who could call the server: it refuses to listen beyond this machine for nobody. */
export function checkCredentials({ auth, server }: Config, seen: LedgerInspection): Finding[] {
  const isSet = auth.api_key !== undefined || auth.admin_token !== undefined;
  if (isSet) return [ok('credentials', 'set'), ...examineChosen(auth)];
  if (seen.kind === 'current' && seen.hasCredential) return [ok('credentials', 'in the ledger')];
  if (seen.kind === 'refused' || (seen.kind === 'older' && seen.found > 0)) return [];
  if (isLoopback(server.host))
    return [ok('credentials', 'none yet: the first start makes a service key, and shows it')];
  return [
    problem(
      'credentials',
      `none, and without one the server does not listen on ${server.host}`,
      'set DAWATCH_API_KEY (at least 16 characters), or, once there is a ledger, make a token with `dawatch token create`',
    ),
  ];
}

/** Keys of the settings can be guessed if a person made them up. */
function examineChosen({ api_key, admin_token }: Config['auth']): Finding[] {
  const weak = Object.entries({ api_key, admin_token }).flatMap(([name, secret]) => {
    const weakness = secret === undefined ? undefined : weaknessOf(secret);
    if (weakness === undefined) return [];
    const role = name === 'api_key' ? 'service' : 'admin';
    const action = `use a token of \`dawatch token create --role ${role} --name …\` instead`;
    return [warning('credentials', `${settingName(`auth.${name}`)} does not look random: ${weakness}`, action)];
  });
  if (api_key === undefined || api_key !== admin_token) return weak;
  const both = `${settingName('auth.api_key')} and ${settingName('auth.admin_token')}`;
  return [
    ...weak,
    problem('credentials', `${both} are the same, which has the role service`, 'set two different ones'),
  ];
}
