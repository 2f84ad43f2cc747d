import { type Check, ok, problem, settingName, warning } from '../operations/doctor/finding.ts';
import { detailOf, discover } from './provider.ts';
import type { AccessSettings } from './settings.ts';
import { type Users, usersOf } from './users.ts';

/** A user that cannot exist: the domain .invalid is reserved. */
const NONEXISTENT_USER = { name: 'dawatch doctor', email: 'doctor@dawatch.invalid' };

export function accessChecks(
  config: AccessSettings,
  client: Parameters<typeof usersOf>[1],
  limitMs: number,
): Check[] {
  const checks: Check[] = [];
  if (client !== undefined && config.upstreams.default.bearer !== undefined) {
    const run = async () => [await checkBearer(usersOf(config, client))];
    checks.push({ name: 'users.default', run });
  }
  if (config.oidc.issuer !== undefined)
    checks.push({ name: 'oidc', run: async () => [await checkProvider(config, limitMs)] });
  return checks;
}

async function checkBearer({ getUser }: Users) {
  const about = 'users.default';
  const { kind, ...lookup } = await getUser(NONEXISTENT_USER);
  if (kind === 'found' || kind === 'not_found')
    return ok(about, 'user lookups work, and the token is accepted');
  if (kind === 'unauthorized' || kind === 'forbidden')
    return problem(
      about,
      'the upstream refuses the token for user lookups',
      `set ${settingName('upstreams.default.bearer')} to a valid token`,
    );
  const detail = 'detail' in lookup ? lookup.detail : 'too many concurrent lookups';
  const advice = 'verify the paths and parameters in upstreams.default.users';
  return warning(about, `user lookups do not work: ${detail}`, advice);
}

/** The client secret can only be checked by a sign-in. */
async function checkProvider({ oidc, server }: AccessSettings, limitMs: number) {
  try {
    await discover(oidc, limitMs / 1_000);
    const redirect = `${server.public_url?.replace(/\/+$/, '')}/v1/session/oidc/callback`;
    return ok('oidc', `the provider responds; it must allow the redirect to ${redirect}`);
  } catch (error) {
    return problem(
      'oidc',
      `people cannot sign in at the provider: ${detailOf(error)}`,
      `verify ${settingName('oidc.issuer')}, and the client at the provider`,
    );
  }
}
