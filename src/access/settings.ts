import { z } from 'zod';
import { isLoopback } from '../lib/addresses.ts';
import { baseUrl, count, section } from '../operations/config/section-values.ts';

export const limitsSection = section({
  requests_per_minute: count(60_000, 0).describe(
    'Requests per minute of one credential, or of one address without a credential; 0: no limit',
  ),
  failed_authentications_per_minute: count(20, 0).describe(
    'Failed authentications per minute of one address. Above the limit, wrong credentials get 429, and bearers are not forwarded to the upstream. 0: no limit',
  ),
});

const credential = z
  .string()
  .regex(/^[\x21-\x7e]{32,}$/, 'must have at least 32 characters, printable ASCII without spaces')
  .optional();

export const authSection = section({
  service_key: credential.describe(
    'A service key that clients may send. One that begins with dawatch_service_ is never forwarded upstream. Without any credential, the first start creates a key and prints it',
  ),
  admin_token: credential.describe(
    'A token with the role admin. One that begins with dawatch_admin_ is never forwarded upstream',
  ),
});

/** Over http, a machine on the network path could replace the keys of the provider. */
const isSafeIssuer = (text: string) => {
  const { protocol, hostname = '' } = URL.parse(text) ?? {};
  return protocol !== 'http:' || isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'));
};

const claimValues = z.array(z.string().min(1).max(200)).max(100).default([]);
const valuesFor = (role: string) =>
  claimValues.describe(`Values of the claim that give the role ${role}`);

export const oidcSection = section({
  issuer: baseUrl
    .refine(isSafeIssuer, 'must be an https:// address; http:// only on this machine')
    .optional()
    .describe(
      'The OpenID Connect provider, exactly as it names itself. Requires client_id, server.public_url and a role',
    ),
  client_id: z.string().min(1).max(200).optional().describe('Client id of dawatch at the provider'),
  client_secret: z
    .string()
    .regex(/^[\x20-\x7e]+$/, 'must be printable ASCII')
    .optional()
    .describe('Client secret, created by the provider; not set: a public client'),
  scopes: z
    .array(
      z
        .string()
        .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be a scope: printable ASCII without spaces'),
    )
    .max(50)
    .refine((scopes) => scopes.includes('openid'), 'must contain openid')
    .default(['openid', 'email', 'profile'])
    .describe(
      'Scopes to request; with them, the provider must send `role_claim` in the ID token or from its userinfo endpoint',
    ),
  role_claim: z
    .string()
    .min(1)
    .max(200)
    .default('groups')
    .describe(
      'Claim that determines the role: a text, several separated by commas, a list, or an object whose keys are the values. Dots lead to nested claims: `realm_access.roles`',
    ),
  roles: section({
    admin: valuesFor('admin'),
    operator: valuesFor('operator'),
    service: valuesFor('service'),
    user: valuesFor('user'),
  }),
});

export type AccessSettings = {
  limits: z.output<typeof limitsSection>;
  auth: z.output<typeof authSection>;
  oidc: z.output<typeof oidcSection>;
  server: { host: string; public_url?: string | undefined };
  upstreams: {
    default: {
      bearer?: string | undefined;
      users: { get_path: string; list_path: string; parameters: 'query' | 'body' };
    };
  };
};
