import { z } from 'zod';
import { AUDIT_ACTIONS, AUDIT_RESULTS } from '../../../domain/audit/actions.ts';
import { iso } from '../../../domain/timestamps.ts';
import type { ChainCheck, StoredEntry } from '../../../ledger/access/audit-chain.ts';
import { nextCursorSchema } from '../../query.ts';

export const hashSchema = z.string().regex(/^[0-9a-f]{64}$/, 'must be the 64 hexadecimal digits of a hash');

const entrySchema = z
  .object({
    seq: z.int(),
    at: z.iso.datetime().describe('ISO 8601, UTC'),
    caller: z
      .string()
      .describe(
        'Name of the credential; for a token of the upstream, "forwarded:" and a short keyed hash of it; for a command, "cli:" and the user of the system; SIGHUP for a signal; dawatch for the server itself',
      ),
    caller_person: z
      .string()
      .nullable()
      .describe(
        'E-mail address or subject of a caller who signed in by OpenID Connect; `caller` is then `person:` and the credential_id. Not covered by `hash`; the entry of the sign-in has the masked address',
      ),
    credential_id: z
      .int()
      .nullable()
      .describe('Id of the credential in `dawatch token list`; null for a configured credential and a forwarded token'),
    address: z
      .string()
      .nullable()
      .describe(
        'Address of the client, see `server.trusted_proxies`; null if there was no request, or it was not recorded',
      ),
    action: z.string().describe(
      Object.entries(AUDIT_ACTIONS)
        .map(([action, text]) => `${action}: ${text}`)
        .join('. '),
    ),
    result: z
      .string()
      .describe(
        `${AUDIT_RESULTS.join(', ')}. refused: by dawatch or the upstream; failed: the upstream returned no usable response; busy: not sent, too many lookups were in flight; reloaded: changed settings were applied; done: the change is stored`,
      ),
    subject: z.string().nullable().describe('What was changed, see `action`'),
    detail: z
      .string()
      .nullable()
      .describe(
        'The limit, the names of the changed settings or fields, the changed alert or mute, or the reason of a refusal or failure',
      ),
    email_hash: z
      .string()
      .nullable()
      .describe(
        'Keyed hash of the requested address; equal addresses have equal hashes. The key is in the ledger, so this protects listings and exports, not that file',
      ),
    email_masked: z.string().nullable(),
    hash: z.string().describe('SHA-256 of the preceding hash and of this entry'),
  })
  .describe('An entry of the audit')
  .meta({ id: 'AuditEntry' });

const EXAMPLE = {
  seq: 1,
  at: '2026-01-02T03:04:05.123Z',
  caller: 'support desk',
  caller_person: null,
  credential_id: 3,
  address: '192.0.2.1',
  action: 'users.get',
  result: 'found',
  subject: null,
  detail: null,
  email_hash: '5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592',
  email_masked: 'a…@example.com',
  hash: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
};

export const auditSchema = z
  .object({
    head: z
      .object({ seq: z.int(), hash: hashSchema })
      .nullable()
      .describe('The newest entry, whose hash commits to all entries; store it elsewhere. null: there is no entry'),
    entries: z.array(entrySchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of the audit')
  .meta({
    id: 'AuditPage',
    examples: [{ head: { seq: EXAMPLE.seq, hash: EXAMPLE.hash }, entries: [EXAMPLE], next_cursor: null }],
  });

export const verificationSchema = z
  .object({
    intact: z.boolean(),
    entries: z.int().describe('Number of entries; if it is not intact, of those before the first wrong one'),
    head: hashSchema.nullable().describe('The hash of the newest entry; null if it is not intact'),
    pruned: z
      .int()
      .nullable()
      .describe('Number of entries that retention has deleted (`audit.keep_days`); null if it is not intact'),
    seq: z.int().nullable().describe('The first wrong entry; null if it is intact, or if no single entry is wrong'),
    reason: z.string().nullable().describe('What is wrong; null if it is intact'),
  })
  .describe('The result of checking every hash of the audit')
  .meta({
    id: 'AuditVerification',
    examples: [{ intact: true, entries: 1, pruned: 0, head: EXAMPLE.hash, seq: null, reason: null }],
  });

export function toEntryBody(entry: StoredEntry): z.output<typeof entrySchema> {
  const { seq, at, caller, credentialId, address, action, result, subject, detail, hash } = entry;
  return {
    seq,
    at: iso(at),
    caller,
    caller_person: entry.callerPerson ?? null,
    credential_id: credentialId,
    address,
    action,
    result,
    subject,
    detail,
    email_hash: entry.emailHash,
    email_masked: entry.emailMasked,
    hash,
  };
}

export function toVerificationBody(check: ChainCheck): z.output<typeof verificationSchema> {
  if (check.kind === 'broken')
    return {
      intact: false,
      entries: check.entries,
      head: null,
      pruned: null,
      seq: check.seq,
      reason: check.reason,
    };
  const { entries, pruned, head } = check;
  return { intact: true, entries, pruned, head, seq: null, reason: null };
}
