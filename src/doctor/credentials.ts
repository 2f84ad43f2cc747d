import type { Config } from '../config-schema.ts';
import { isLoopback } from '../credentials.ts';
import type { Glimpse } from '../ledger/glimpse.ts';
import { type Finding, ok, problem } from './finding.ts';

/** Who could call the server: it refuses to listen beyond this machine for nobody. */
export function examineCredentials({ auth, server }: Config, seen: Glimpse): Finding[] {
  const isSet = auth.api_key !== undefined || auth.admin_token !== undefined;
  if (isSet) return [ok('credentials', 'set')];
  if (seen.kind === 'current' && seen.hasCredential) return [ok('credentials', 'in the ledger')];
  if (seen.kind === 'refused' || (seen.kind === 'older' && seen.found > 0)) return [];
  if (isLoopback(server.host))
    return [ok('credentials', 'none yet: the first start makes a service key, and shows it')];
  return [
    problem(
      'credentials',
      `none, and without one the server does not listen on ${server.host}`,
      'set DAWATCH_API_KEY (at least 16 characters), or make a token with `dawatch token create`',
    ),
  ];
}
