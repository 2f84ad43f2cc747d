import { z } from 'zod';
import type { Actor } from '../lib/actor.ts';
import { iso } from '../lib/timestamps.ts';
import { fromStoredRights, sha256 } from './access.ts';
import {
  type CredentialLedger,
  type CredentialRecord,
  type CredentialStore,
  type IssuedCredential,
  makeToken,
} from './credentials-store.ts';

/**
 * 1 to 64 printable characters of ASCII, so that no name looks like a reserved one; spaces only
 * between them.
 */
const NAME_PATTERN = /^(?! )[\x20-\x7e]{1,64}(?<! )$/;

/** Names that the audit uses for callers without a credential in the ledger. */
const RESERVED_NAME = /^(?:forwarded|DAWATCH_|cli:|person:|dawatch$|unauthenticated$)/i;

/** Returns why a credential cannot have this name; undefined if it can. */
export function nameProblem(name: string): string | undefined {
  if (!NAME_PATTERN.test(name))
    return 'must be 1 to 64 printable characters of ASCII, with spaces only between them';
  return RESERVED_NAME.test(name)
    ? 'must not begin with "forwarded", "DAWATCH_", "cli:" or "person:", or be "dawatch" or "unauthenticated"'
    : undefined;
}

export const credentialNameSchema = z
  .string()
  .superRefine((name, context) => {
    const message = nameProblem(name);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .describe('Name of the client, 1 to 64 characters of ASCII; appears in the audit')
  .meta({ examples: ['billing'] });

export const CREDENTIAL_STATES = ['valid', 'expired', 'revoked'] as const;
export type CredentialState = (typeof CREDENTIAL_STATES)[number];

/** Times are epoch milliseconds. A credential is invalid from the moment of its expiry on. */
export function credentialState(
  { expiresAt, revokedAt }: { expiresAt: number | null; revokedAt: number | null },
  now: number,
): CredentialState {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'valid';
}

/**
 * Reasons why a credential was not changed. last_admin: no other credential with the scope admin
 * would be valid. person: it has no secret, and its name and role come from a provider. not_person:
 * it has a secret, and a revoked secret must stay invalid. many_secrets: it has MAX_REPLACED
 * secrets that are still accepted.
 */
export type CredentialRefusal = {
  kind:
    | 'unknown'
    | 'is_revoked'
    | 'has_expired'
    | 'last_admin'
    | 'person'
    | 'not_person'
    | 'many_secrets';
};

/** Maximum number of replaced secrets of a credential that are accepted at the same time. */
export const MAX_REPLACED = 4;

/** Limits and default of the time for which a rotated secret is still accepted. */
export const DAY_S = 86_400;
export const MAX_OVERLAP_S = 30 * DAY_S;

/**
 * Each change is stored with its audit entry in one transaction. The functions below throw
 * LedgerError.
 */
type Change = { actor: Actor; now: number };

/**
 * Replaces the secret of a valid credential. The replaced secret is accepted for the overlap;
 * earlier secrets end at the same time at the latest.
 */
export function rotateCredential(
  ledger: CredentialLedger,
  { actor, now, id, overlapS }: Change & { id: number; overlapS: number },
): ({ kind: 'rotated' } & IssuedCredential) | CredentialRefusal {
  const { credentials } = ledger;
  const rotate = () => {
    const found = credentials.get(id);
    if (!found) return { kind: 'unknown' } as const;
    if (found.person !== null) return { kind: 'person' } as const;
    const state = credentialState(found, now);
    if (state !== 'valid')
      return { kind: state === 'revoked' ? 'is_revoked' : 'has_expired' } as const;
    // Without an overlap, all replaced secrets end.
    if (overlapS > 0 && credentials.replacedSecrets(id, now).length >= MAX_REPLACED)
      return { kind: 'many_secrets' } as const;
    const secret = makeToken(fromStoredRights(found)?.role ?? null);
    credentials.rotate(id, sha256(secret), { oldUntil: now + overlapS * 1_000, now });
    return { kind: 'rotated', record: credentials.get(id) ?? found, secret } as const;
  };
  const entry = {
    action: 'tokens.rotate',
    subject: String(id),
    detail: `overlap_s ${overlapS}`,
  } as const;
  return ledger.audit.change(actor, now, rotate, ({ kind }) =>
    kind === 'rotated' ? entry : undefined,
  );
}

/** `isLastAllowed`: whether the credential may be the last one with the scope admin. */
export function revokeCredential(
  ledger: CredentialLedger,
  { actor, now, id, isLastAllowed }: Change & { id: number; isLastAllowed: boolean },
): { kind: 'revoked'; wasRevoked: boolean; record: CredentialRecord } | CredentialRefusal {
  const { credentials } = ledger;
  const revoke = () => {
    const record = credentials.get(id);
    if (!record) return { kind: 'unknown' } as const;
    if (!isLastAllowed && isLastAdmin(credentials, record, { now, endsAt: now }))
      return { kind: 'last_admin' } as const;
    return { kind: 'revoked', wasRevoked: !credentials.revoke(id, now), record } as const;
  };
  const entry = { action: 'tokens.revoke', subject: String(id) } as const;
  return ledger.audit.change(actor, now, revoke, (result) =>
    result.kind === 'revoked' && !result.wasRevoked ? entry : undefined,
  );
}

/** Changes the fields that are not undefined, also of an expired credential. */
export function updateCredential(
  ledger: CredentialLedger,
  change: Change & {
    id: number;
    patch: { name?: string | undefined; expiresAt?: number | null | undefined };
    isLastAllowed: boolean;
  },
): { kind: 'updated'; record: CredentialRecord } | CredentialRefusal {
  const { credentials } = ledger;
  const { actor, now, id, patch, isLastAllowed } = change;
  const update = () => {
    const found = credentials.get(id);
    if (!found) return { kind: 'unknown' } as const;
    if (found.person !== null) return { kind: 'person' } as const;
    if (found.revokedAt !== null) return { kind: 'is_revoked' } as const;
    const { name = found.name, expiresAt = found.expiresAt } = patch;
    const isShortened =
      expiresAt !== null && (found.expiresAt === null || expiresAt < found.expiresAt);
    if (
      isShortened &&
      !isLastAllowed &&
      isLastAdmin(credentials, found, { now, endsAt: expiresAt })
    )
      return { kind: 'last_admin' } as const;
    credentials.update(id, { name, expiresAt });
    return { kind: 'updated', record: { ...found, name, expiresAt } } as const;
  };
  const expiry =
    patch.expiresAt === undefined
      ? []
      : [`expires ${patch.expiresAt === null ? 'never' : iso(patch.expiresAt)}`];
  const detail = [...(patch.name === undefined ? [] : ['name']), ...expiry].join(', ');
  const entry = { action: 'tokens.update', subject: String(id), detail } as const;
  return ledger.audit.change(actor, now, update, ({ kind }) =>
    kind === 'updated' ? entry : undefined,
  );
}

/** Makes the revoked credential of a person valid again. The person must sign in again. */
export function readmitPerson(
  ledger: CredentialLedger,
  { actor, now, id }: Change & { id: number },
): { kind: 'admitted'; wasRevoked: boolean; record: CredentialRecord } | CredentialRefusal {
  const { credentials } = ledger;
  const readmit = () => {
    const found = credentials.get(id);
    if (!found) return { kind: 'unknown' } as const;
    if (found.person === null)
      return { kind: found.revokedAt === null ? 'not_person' : 'is_revoked' } as const;
    const wasRevoked = found.revokedAt !== null;
    if (wasRevoked) credentials.readmit(id);
    return { kind: 'admitted', wasRevoked, record: { ...found, revokedAt: null } } as const;
  };
  const entry = { action: 'tokens.readmit', subject: String(id) } as const;
  return ledger.audit.change(actor, now, readmit, (result) =>
    result.kind === 'admitted' && result.wasRevoked ? entry : undefined,
  );
}

/**
 * Returns whether no other credential with the scope admin would be valid after `endsAt`.
 * Credentials of people count only when a person's credential ends, because access by tokens must
 * not depend on a provider.
 */
function isLastAdmin(
  credentials: CredentialStore,
  record: CredentialRecord,
  { now, endsAt }: { now: number; endsAt: number },
): boolean {
  const isAdmin = fromStoredRights(record)?.scopes.has('admin');
  const countsPeople = record.person !== null;
  return (
    isAdmin === true &&
    credentialState(record, now) === 'valid' &&
    !credentials.isOtherAdminValid(record.id, endsAt, { countsPeople })
  );
}
