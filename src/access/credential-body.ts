import { z } from 'zod';
import { nextCursorSchema, rowId, timeSchema } from '../http/query.ts';
import { iso } from '../lib/timestamps.ts';
import { CREDENTIAL_STATES, credentialNameSchema, credentialState } from './credential.ts';
import { DAY_S, MAX_OVERLAP_S } from './credential-changes.ts';
import type { CredentialRecord, ReplacedSecret } from './credentials-store.ts';
import {
  fromStoredRights,
  type Rights,
  ROLES,
  rightsOfRole,
  rightsOfScopes,
  SCOPES,
} from './scopes.ts';

export const roleSchema = z
  .enum(ROLES)
  .describe(
    'service: submissions; user: lookups of single users; operator: reads submissions, webhooks, deliveries, channels and mutes; admin: everything',
  )
  .meta({ id: 'Role' });

export const scopeSchema = z
  .enum(SCOPES)
  .describe('What a credential may do; admin includes all')
  .meta({ id: 'Scope' });

const stateSchema = z
  .enum(CREDENTIAL_STATES)
  .describe('expired: a later expiry makes it valid again')
  .meta({ id: 'CredentialState' });

export const credentialIdSchema = rowId('a credential', '3');

const expiry = z.iso
  .datetime({ offset: true, error: 'must be a time like 2027-01-02T03:04:05Z' })
  .nullable()
  .describe('Time from which the credential is refused; null: never');

export const newCredentialSchema = z
  .strictObject({
    name: credentialNameSchema,
    role: roleSchema.optional(),
    scopes: z.array(scopeSchema).min(1, 'must have at least one scope').max(100).optional(),
    expires_at: expiry.default(null),
  })
  .refine(({ role, scopes }) => (role === undefined) !== (scopes === undefined), {
    path: ['role'],
    error: 'either role or scopes is required, and not both',
  })
  .meta({
    id: 'NewCredential',
    examples: [
      { name: 'billing', role: 'service' },
      { name: 'deploys', scopes: ['webhooks:write'], expires_at: '2027-01-02T03:04:05Z' },
    ],
  });

export const credentialPatchSchema = z
  .strictObject({ name: credentialNameSchema, expires_at: expiry })
  .partial()
  .refine((patch) => Object.keys(patch).length > 0, 'must have at least one field')
  .describe('Absent fields are unchanged. Role and scopes cannot be changed')
  .meta({ id: 'CredentialPatch', examples: [{ expires_at: '2027-01-02T03:04:05Z' }] });

export const credentialRotationSchema = z
  .strictObject({
    overlap_s: z
      .int()
      .min(0)
      .max(MAX_OVERLAP_S)
      .default(DAY_S)
      .describe('Seconds for which the old secret is also accepted; 0: none'),
  })
  .meta({ id: 'CredentialRotation', examples: [{ overlap_s: 3_600 }] });

const EXAMPLE = {
  id: 3,
  name: 'billing',
  person: null,
  role: 'service',
  scopes: ['submissions:read', 'submissions:write'],
  state: 'valid',
  created_at: '2026-01-02T03:04:05.123Z',
  expires_at: null,
  last_used_at: '2026-01-02T03:05:00.000Z',
  revoked_at: null,
  replaced_secrets: [],
} as const;

const replacedSecretSchema = z
  .object({
    valid_until: timeSchema,
    last_used_at: timeSchema
      .nullable()
      .describe('Time of its last use, to the minute; null: not used'),
  })
  .describe('A secret that was replaced and is still accepted')
  .meta({ id: 'ReplacedSecret' });

export const credentialSchema = z
  .object({
    id: z.int(),
    name: z.string(),
    person: z
      .string()
      .nullable()
      .describe(
        'E-mail address or subject of the person who signs in with this credential by OpenID Connect; null for the token of a client',
      ),
    role: roleSchema.nullable().describe('null: it has scopes of its own'),
    scopes: z.array(scopeSchema).describe('All scopes of the credential'),
    state: stateSchema,
    created_at: timeSchema,
    expires_at: timeSchema.nullable(),
    last_used_at: timeSchema
      .nullable()
      .describe('Time of the last use of the current secret, to the minute; null: not used'),
    revoked_at: timeSchema.nullable(),
    replaced_secrets: z.array(replacedSecretSchema).describe('Newest first'),
  })
  .describe('A credential, without its secret')
  .meta({ id: 'Credential', examples: [EXAMPLE] });

export const credentialWithSecretSchema = credentialSchema
  .extend({ secret: z.string().describe('Returned only here; only its hash is stored') })
  .describe('A credential with its new secret')
  .meta({
    id: 'CredentialWithSecret',
    examples: [
      { ...EXAMPLE, secret: 'dawatch_service_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8' },
    ],
  });

export const credentialListSchema = z
  .object({
    credentials: z.array(credentialSchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of credentials')
  .meta({ id: 'CredentialPage', examples: [{ credentials: [EXAMPLE], next_cursor: null }] });

export function rightsIn({ role, scopes = [] }: z.output<typeof newCredentialSchema>): Rights {
  return role === undefined ? rightsOfScopes(scopes) : rightsOfRole(role);
}

/**
 * Fields of the JSON representation over HTTP and on the command line. A credential with unknown
 * rights, written by a newer version, is shown without scopes.
 */
export function toCredentialBody(
  record: CredentialRecord,
  { replaced, now }: { replaced: readonly ReplacedSecret[]; now: number },
): z.output<typeof credentialSchema> {
  const rights = fromStoredRights(record);
  return {
    id: record.id,
    name: record.name,
    person: record.person,
    role: rights?.role ?? null,
    scopes: [...(rights?.scopes ?? [])],
    state: credentialState(record, now),
    created_at: iso(record.createdAt),
    expires_at: isoOrNull(record.expiresAt),
    last_used_at: isoOrNull(record.lastUsedAt),
    revoked_at: isoOrNull(record.revokedAt),
    replaced_secrets: replaced.map(({ validUntil, lastUsedAt }) => ({
      valid_until: iso(validUntil),
      last_used_at: isoOrNull(lastUsedAt),
    })),
  };
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}
