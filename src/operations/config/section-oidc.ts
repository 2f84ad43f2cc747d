import { z } from 'zod';
import { isLoopback } from '../../lib/addresses.ts';
import { section } from './section-values.ts';

/** Over http, a machine on the network path could replace the keys of the provider. */
const isIssuer = (text: string) => {
  const url = URL.parse(text);
  if (url === null || /[?#\s]/.test(text) || url.username !== '' || url.password !== '')
    return false;
  return (
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[(.*)\]$/, '$1')))
  );
};

const claimValues = z.array(z.string().min(1).max(200)).max(100).default([]);
const valuesFor = (role: string) =>
  claimValues.describe(`Values of the claim that give the role ${role}`);

export const oidcSection = section({
  issuer: z
    .string()
    .refine(
      isIssuer,
      'must be an https:// address without user, query and fragment; http:// only on this machine',
    )
    .optional()
    .describe(
      'The OpenID Connect provider at which people sign in to the dashboard, exactly as it names itself. Requires client_id, server.public_url and a role',
    ),
  client_id: z.string().min(1).max(200).optional().describe('Client id of dawatch at the provider'),
  client_secret: z
    .string()
    .regex(/^[\x20-\x7e]+$/, 'must be printable ASCII')
    .optional()
    .describe('Client secret, created by the provider; not set: a public client'),
  name: z
    .string()
    .min(1)
    .max(40)
    .default('single sign-on')
    .describe('Name of the provider on the sign-in page: "Sign in with …"'),
  scopes: z
    .array(
      z
        .string()
        .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be a scope: printable ASCII without spaces'),
    )
    .max(50)
    .refine((scopes) => scopes.includes('openid'), 'must contain openid')
    .default(['openid', 'email', 'profile'])
    .describe('Scopes to request; the provider must then put `role_claim` into the ID token'),
  role_claim: z
    .string()
    .min(1)
    .max(200)
    .default('groups')
    .describe(
      'Claim of the ID token that determines the role: a text or a list of texts. Dots lead to nested claims: `realm_access.roles`',
    ),
  sign_out: z
    .boolean()
    .default(false)
    .describe(
      'Whether signing out of the dashboard also ends the session at the provider. The provider must permit the return to `server.public_url`',
    ),
  roles: section({
    admin: valuesFor('admin'),
    operator: valuesFor('operator'),
    service: valuesFor('service'),
    user: valuesFor('user'),
  }),
});
