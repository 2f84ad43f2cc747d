import { detailOf, discover } from '../../access/provider.ts';
import type { Config } from '../config/schema.ts';
import { type Finding, ok, problem, reported, warning } from './finding.ts';
import { settingName } from './settings.ts';

/**
 * Checks that the provider responds and has the configured issuer. The client secret can only be
 * checked by a sign-in.
 */
export async function checkProvider({ oidc, server }: Config, limitMs: number): Promise<Finding[]> {
  const issuer = settingName('oidc.issuer');
  try {
    const endpoints = (await discover(oidc, limitMs / 1_000)).serverMetadata();
    const redirect = `${server.public_url?.replace(/\/+$/, '')}/v1/session/oidc/callback`;
    const isMissing = (name: string) => endpoints.scopes_supported?.includes(name) === false;
    const missing = oidc.scopes.filter(isMissing);
    return reported(
      ok('oidc', `the provider responds; it must allow the redirect to ${redirect}`),
      missing.length > 0 &&
        warning(
          'oidc.scopes',
          `the provider does not list ${missing.join(', ')}`,
          'remove them, or create them there',
        ),
      server.public_url?.startsWith('http:') === true &&
        !/^http:\/\/(?:localhost|127\.|\[::1\])/.test(server.public_url) &&
        warning(
          'oidc.public_url',
          'people sign in without https',
          `set ${settingName('server.public_url')} to https`,
        ),
    );
  } catch (error) {
    return [
      problem(
        'oidc',
        `people cannot sign in at the provider: ${detailOf(error)}`,
        `verify ${issuer}`,
      ),
    ];
  }
}
