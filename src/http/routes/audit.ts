import { z } from 'zod';
import type { AuditRecord } from '../../ledger/access/audit.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { AUDIT_ACTIONS, AUDIT_RESULTS, type TypedServer } from '../ports.ts';
import { operations } from '../problems.ts';
import { nextCursor, nextCursorSchema, pageOf, pageParameters } from '../query.ts';

const entrySchema = z
  .object({
    seq: z.int(),
    at: z.iso.datetime().describe('ISO 8601, UTC'),
    caller: z
      .string()
      .describe(
        'Name of the credential; for a token of the upstream, "forwarded:" and a short keyed hash of it; SIGHUP for a signal',
      ),
    credential_id: z
      .int()
      .nullable()
      .describe('Id of the credential in `dawatch token list`; null for a configured credential or a forwarded token'),
    address: z
      .string()
      .nullable()
      .describe(
        'Address of the client, see `server.trusted_proxies`; null for a signal, and in entries older than this field',
      ),
    action: z.string().describe(AUDIT_ACTIONS.join(', ')),
    result: z
      .string()
      .describe(
        `${AUDIT_RESULTS.join(', ')}. refused: by dawatch or the upstream; failed: the upstream returned no usable response; busy: not sent, too many lookups were in flight; reloaded: changed settings were applied`,
      ),
    detail: z
      .string()
      .nullable()
      .describe('The limit, the names of the changed settings, or the reason of a refusal or failure'),
    email_hash: z
      .string()
      .nullable()
      .describe(
        'Keyed hash of the requested address; equal addresses have equal hashes. The key is in the ledger, so this protects listings and exports, not that file',
      ),
    email_masked: z.string().nullable(),
  })
  .describe('An audited access')
  .meta({ id: 'AuditEntry' });

const EXAMPLE = {
  seq: 1,
  at: '2026-01-02T03:04:05.123Z',
  caller: 'support desk',
  credential_id: 3,
  address: '192.0.2.1',
  action: 'users.get',
  result: 'found',
  detail: null,
  email_hash: '5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592',
  email_masked: 'a…@example.com',
};

const auditSchema = z
  .object({ entries: z.array(entrySchema).describe('Newest first'), next_cursor: nextCursorSchema })
  .describe('A page of the audit')
  .meta({ id: 'AuditPage', examples: [{ entries: [EXAMPLE], next_cursor: null }] });

const OPERATIONS = operations('users', {
  listAudit: {
    summary: 'List audited user lookups and reloads of the settings, newest first',
    description:
      'Append-only. Requests without a valid credential and invalid requests are not recorded, because nothing was looked up.',
    querystring: z.strictObject(pageParameters),
    response: { 200: auditSchema },
  },
});

export function registerAudit(app: TypedServer, { ledger }: { ledger: Ledger }): void {
  app.get('/v1/audit', { config: { isExpensive: true }, schema: OPERATIONS.listAudit }, async ({ query }) => {
    const page = ledger.audit.list(pageOf(query));
    return { entries: page.entries.map(toEntryBody), next_cursor: nextCursor(page.nextBefore) };
  });
}

function toEntryBody(record: AuditRecord): z.output<typeof entrySchema> {
  const { credentialId, emailHash, emailMasked, at, ...entry } = record;
  return {
    ...entry,
    at: new Date(at).toISOString(),
    credential_id: credentialId,
    email_hash: emailHash,
    email_masked: emailMasked,
  };
}
