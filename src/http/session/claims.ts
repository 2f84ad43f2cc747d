import { z } from 'zod';
import type { Config } from '../../config/schema.ts';
import type { Role } from '../../domain/access/scopes.ts';
import { isObject } from '../../domain/json.ts';
import { escapeText } from '../../domain/text.ts';

/** A person at a provider. `name`: the e-mail address, or the subject without one. */
export type Person = { issuer: string; subject: string; name: string };

type Claims = Readonly<Record<string, unknown>>;

/** A person with values for several roles gets the first one. */
const PRECEDENCE: readonly Role[] = ['admin', 'operator', 'service', 'user'];
const MAX_NAME_CHARS = 254;

/** Returns the person of verified claims. An address that the provider has not verified may belong to another person. */
export function personOf(claims: Claims & { iss: string; sub: string }): Person {
  const { iss: issuer, sub: subject, email, email_verified: isVerified } = claims;
  const isAddress = typeof email === 'string' && z.regexes.html5Email.test(email) && email.length <= MAX_NAME_CHARS;
  const mayBeUsed = isAddress && isVerified !== false && isVerified !== 'false';
  return { issuer, subject, name: mayBeUsed ? email : escapeText(subject, MAX_NAME_CHARS) };
}

/** Returns the role that the settings give to the claims; undefined: none. */
export function roleOf(
  claims: Claims,
  { role_claim, roles }: Pick<Config['oidc'], 'role_claim' | 'roles'>,
): Role | undefined {
  const claim = claimAt(claims, role_claim);
  const values = Array.isArray(claim) ? claim : [claim];
  return PRECEDENCE.find((role) => roles[role].some((value) => values.includes(value)));
}

/** A name with dots, such as a URL, is first looked up as a whole. */
function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name
    .split('.')
    .reduce<unknown>((node, key) => (isObject(node) && Object.hasOwn(node, key) ? node[key] : undefined), claims);
}
