import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { locationOf } from '../http/methods.ts';
import { operations, problemResponses, sendInvalidField, sendProblem } from '../http/problems.ts';
import {
  nextCursor,
  nextCursorSchema,
  pageOf,
  pageParameters,
  rowId,
  timeSchema,
} from '../http/query.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { Clock } from '../lib/clock.ts';
import { iso } from '../lib/timestamps.ts';
import {
  actorOf,
  fromStoredRights,
  type Rights,
  ROLES,
  rightsOfRole,
  rightsOfScopes,
  SCOPES,
} from './access.ts';
import {
  CREDENTIAL_STATES,
  type CredentialRefusal,
  credentialNameSchema,
  credentialState,
  DAY_S,
  MAX_OVERLAP_S,
  MAX_REPLACED,
  readmitPerson,
  revokeCredential,
  rotateCredential,
  updateCredential,
} from './credential-changes.ts';
import {
  type CredentialLedger,
  type CredentialRecord,
  createCredential,
  MAX_CREDENTIALS,
  type ReplacedSecret,
} from './credentials-store.ts';

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

const credentialIdSchema = rowId('a credential', '3');

const expiry = z.iso
  .datetime({ offset: true, error: 'must be a time like 2027-01-02T03:04:05Z' })
  .nullable()
  .describe('Time from which the credential is refused; null: never');

const newCredentialSchema = z
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

const credentialPatchSchema = z
  .strictObject({ name: credentialNameSchema, expires_at: expiry })
  .partial()
  .refine((patch) => Object.keys(patch).length > 0, 'must have at least one field')
  .describe('Absent fields are unchanged. Role and scopes cannot be changed')
  .meta({ id: 'CredentialPatch', examples: [{ expires_at: '2027-01-02T03:04:05Z' }] });

const credentialRotationSchema = z
  .strictObject({
    overlap_s: z
      .int()
      .min(0)
      .max(MAX_OVERLAP_S)
      .default(DAY_S)
      .describe('Seconds for which the old secret is also accepted; 0: none'),
  })
  .prefault({})
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

const credentialSchema = z
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

const credentialWithSecretSchema = credentialSchema
  .extend({ secret: z.string().describe('Returned only here; only its hash is stored') })
  .describe('A credential with its new secret')
  .meta({
    id: 'CredentialWithSecret',
    examples: [
      { ...EXAMPLE, secret: 'dawatch_service_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8' },
    ],
  });

const credentialListSchema = z
  .object({
    credentials: z.array(credentialSchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of credentials')
  .meta({ id: 'CredentialPage', examples: [{ credentials: [EXAMPLE], next_cursor: null }] });

function rightsIn({ role, scopes = [] }: z.output<typeof newCredentialSchema>): Rights {
  return role === undefined ? rightsOfScopes(scopes) : rightsOfRole(role);
}

/**
 * Fields of the JSON representation over HTTP and on the command line. A credential with unknown
 * rights, written by a newer version, is shown without scopes.
 */
function toCredentialBody(
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

const params = z.strictObject({ id: credentialIdSchema });

const OPERATIONS = operations('credentials', {
  createCredential: {
    summary: 'Create a credential',
    description: `Its secret, a token, is returned only in this response. 409 if ${MAX_CREDENTIALS} credentials are not revoked. Audited.`,
    body: newCredentialSchema,
    response: { 201: credentialWithSecretSchema, ...problemResponses(409, 507) },
  },
  listCredentials: {
    summary: 'List credentials, newest first',
    description:
      'Includes expired and revoked ones. The credentials of the settings, DAWATCH_API_KEY and DAWATCH_ADMIN_TOKEN, are not listed.',
    querystring: z.strictObject(pageParameters),
    response: { 200: credentialListSchema },
  },
  getCredential: {
    summary: 'Get a credential',
    params,
    response: { 200: credentialSchema, ...problemResponses(404) },
  },
  updateCredential: {
    summary: 'Change the name or the expiry of a credential',
    description:
      'A later expiry makes an expired credential valid again. 409 if it is revoked, or if no other credential with the scope admin would be valid after the expiry. Audited.',
    params,
    body: credentialPatchSchema,
    response: { 200: credentialSchema, ...problemResponses(404, 409, 507) },
  },
  rotateCredential: {
    summary: 'Replace the secret of a credential',
    description:
      'The old secret is also accepted during the overlap, so that the client can switch. Secrets of earlier rotations end at the same time at the latest. The new secret is returned only in this response. 409 if the credential is expired or revoked, belongs to a person, or has 4 old secrets that are still accepted. Audited.',
    params,
    body: credentialRotationSchema,
    response: { 200: credentialWithSecretSchema, ...problemResponses(404, 409, 507) },
  },
  readmitPerson: {
    summary: 'Admit a person again',
    description:
      'Makes the revoked credential of a person who signs in by OpenID Connect valid again. The person must sign in again. Does nothing if it is valid. 409 for the credential of a client. Audited.',
    params,
    response: { 200: credentialSchema, ...problemResponses(404, 409, 507) },
  },
  revokeCredential: {
    summary: 'Revoke a credential',
    description:
      'Its requests are refused from then on, and its event streams and waiting requests end within 15 s. It stays in the list. 409 for the last valid credential with the scope admin. Does nothing if it is revoked already. Audited.',
    params,
    response: {
      204: z.null().describe('The credential is revoked'),
      ...problemResponses(404, 409, 507),
    },
  },
});

/**
 * Credentials of the ledger. Needs the scope admin, so that no credential can create one with more
 * rights than its own.
 */
export function registerCredentials(
  app: TypedServer,
  deps: { ledger: CredentialLedger; clock: Clock; hasConfiguredAdmin: () => boolean },
): void {
  const { ledger, clock, hasConfiguredAdmin } = deps;
  const store = ledger.credentials;
  const shown = (record: CredentialRecord) => {
    const now = clock.now();
    return toCredentialBody(record, { replaced: store.replacedSecrets(record.id, now), now });
  };
  const changeOf = (request: FastifyRequest) => ({ actor: actorOf(request), now: clock.now() });

  app.post('/v1/credentials', { schema: OPERATIONS.createCredential }, async (request, reply) => {
    const { name, expires_at } = request.body;
    const change = changeOf(request);
    const expiresAt = expires_at === null ? null : Date.parse(expires_at);
    if (expiresAt !== null && expiresAt <= change.now) return pastExpiry(reply);
    if (store.isFull()) {
      const detail = `there are ${MAX_CREDENTIALS} credentials that are not revoked: revoke some of them first`;
      return sendProblem(reply, { status: 409, detail });
    }
    const credential = { rights: rightsIn(request.body), name, expiresAt };
    const { record, secret } = createCredential(ledger, { ...change, credential });
    return reply
      .code(201)
      .header('location', locationOf(request, String(record.id)))
      .send({ ...shown(record), secret });
  });

  const list = { config: { isExpensive: true }, schema: OPERATIONS.listCredentials };
  app.get('/v1/credentials', list, async ({ query }) => {
    const { credentials, nextBefore } = store.page(pageOf(query));
    return { credentials: credentials.map(shown), next_cursor: nextCursor(nextBefore) };
  });

  app.get(
    '/v1/credentials/:id',
    { schema: OPERATIONS.getCredential },
    async ({ params: { id } }, reply) => {
      const record = store.get(Number(id));
      return record ? reply.send(shown(record)) : refuse(reply, id, { kind: 'unknown' });
    },
  );

  app.patch(
    '/v1/credentials/:id',
    { schema: OPERATIONS.updateCredential },
    async (request, reply) => {
      const { id } = request.params;
      const { name, expires_at } = request.body;
      const change = changeOf(request);
      const expiresAt = typeof expires_at === 'string' ? Date.parse(expires_at) : expires_at;
      if (typeof expiresAt === 'number' && expiresAt <= change.now) return pastExpiry(reply);
      const patch = { name, expiresAt };
      const result = updateCredential(ledger, {
        ...change,
        id: Number(id),
        patch,
        isLastAllowed: hasConfiguredAdmin(),
      });
      return result.kind === 'updated'
        ? reply.send(shown(result.record))
        : refuse(reply, id, result);
    },
  );

  app.post(
    '/v1/credentials/:id/rotate',
    { schema: OPERATIONS.rotateCredential },
    async (request, reply) => {
      const { id } = request.params;
      const overlapS = request.body.overlap_s;
      const result = rotateCredential(ledger, { ...changeOf(request), id: Number(id), overlapS });
      if (result.kind !== 'rotated') return refuse(reply, id, result);
      return reply.send({ ...shown(result.record), secret: result.secret });
    },
  );

  app.post(
    '/v1/credentials/:id/readmit',
    { schema: OPERATIONS.readmitPerson },
    async (request, reply) => {
      const { id } = request.params;
      const result = readmitPerson(ledger, { ...changeOf(request), id: Number(id) });
      return result.kind === 'admitted'
        ? reply.send(shown(result.record))
        : refuse(reply, id, result);
    },
  );

  app.delete(
    '/v1/credentials/:id',
    { schema: OPERATIONS.revokeCredential },
    async (request, reply) => {
      const { id } = request.params;
      const isLastAllowed = hasConfiguredAdmin();
      const result = revokeCredential(ledger, {
        ...changeOf(request),
        id: Number(id),
        isLastAllowed,
      });
      return result.kind === 'revoked' ? reply.code(204).send(null) : refuse(reply, id, result);
    },
  );
}

function pastExpiry(reply: FastifyReply): FastifyReply {
  return sendInvalidField(reply, 'expires_at', 'must be in the future');
}

function refuse(reply: FastifyReply, id: string, { kind }: CredentialRefusal): FastifyReply {
  switch (kind) {
    case 'unknown':
      return sendProblem(reply, { status: 404, detail: `there is no credential ${id}` });
    case 'is_revoked':
      return sendProblem(reply, { status: 409, detail: `credential ${id} is revoked` });
    case 'has_expired': {
      const detail = `credential ${id} has expired: set a later expires_at with PATCH first`;
      return sendProblem(reply, { status: 409, detail });
    }
    case 'many_secrets': {
      const detail = `credential ${id} has ${MAX_REPLACED} old tokens that are still accepted: wait until they end, or rotate with overlap_s 0, which ends them`;
      return sendProblem(reply, { status: 409, detail });
    }
    case 'last_admin': {
      const detail = `credential ${id} is the last one with the scope admin that stays valid: create another one first`;
      return sendProblem(reply, { status: 409, detail });
    }
    case 'person': {
      const detail = `credential ${id} belongs to a person who signs in at the provider: it can only be revoked, and admitted again`;
      return sendProblem(reply, { status: 409, detail });
    }
    case 'not_person': {
      const detail = `credential ${id} belongs to no person who signs in at the provider`;
      return sendProblem(reply, { status: 409, detail });
    }
    default:
      return kind satisfies never;
  }
}
