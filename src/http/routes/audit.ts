import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { cursorSchema, fromCursor, toCursor } from '../cursor.ts';
import { AUDIT_ACTIONS, AUDIT_RESULTS, type Audit, type AuditRecord } from '../ports.ts';
import { problemResponse } from '../problems.ts';
import { wholeNumber } from '../whole-number.ts';

const entrySchema = z.object({
  seq: z.int(),
  at: z.iso.datetime().describe('ISO 8601, UTC'),
  caller: z
    .string()
    .describe(
      'Name of the credential; "forwarded:" and a short keyed hash of the token: somebody with a token of the upstream\'s own',
    ),
  credential_id: z
    .int()
    .nullable()
    .describe('Of the credential, as `dawatch token list` shows it; null: configured, or a forwarded token'),
  address: z
    .string()
    .nullable()
    .describe('Of the client, by `server.trusted_proxies`; null: an entry of before it was recorded'),
  action: z.string().describe(AUDIT_ACTIONS.join(' or ')),
  outcome: z
    .string()
    .describe(
      `${AUDIT_RESULTS.join(', ')}. refused: the caller may not, says dawatch or the upstream; failed: the upstream gave no usable answer; busy: it was not asked, too many lookups were under way`,
    ),
  detail: z.string().nullable().describe('The limit, or why it was refused or failed'),
  email_hash: z
    .string()
    .nullable()
    .describe(
      'The address asked for, as a keyed hash: the same for the same address. The key lies in the ledger: this protects listings and exports, not that file',
    ),
  email_masked: z.string().nullable(),
});

const EXAMPLE = {
  seq: 1,
  at: '2026-01-02T03:04:05.123Z',
  caller: 'support desk',
  credential_id: 3,
  address: '192.0.2.1',
  action: 'users.get',
  outcome: 'found',
  detail: null,
  email_hash: '5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592',
  email_masked: 'a…@example.com',
};

const auditSchema = z
  .object({
    entries: z.array(entrySchema).describe('Newest first'),
    next_cursor: z.string().nullable().describe('Send it as `cursor` for the next page; null at the end'),
  })
  .meta({ examples: [{ entries: [EXAMPLE], next_cursor: null }] });

export function registerAudit(instance: FastifyInstance, { audit }: { audit: Audit }): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  app.get(
    '/v1/audit',
    {
      config: { isExpensive: true },
      schema: {
        operationId: 'listAudit',
        summary: 'Who looked up which users, newest first',
        description:
          'Append-only. What had no valid credential, or was not a valid request, is not in it: nothing was looked up.',
        tags: ['users'],
        querystring: z.strictObject({
          limit: wholeNumber({ min: 1, max: 1_000 }).default('100'),
          cursor: cursorSchema.optional(),
        }),
        response: {
          200: auditSchema,
          400: problemResponse,
          401: problemResponse,
          403: problemResponse,
          503: problemResponse,
        },
      },
    },
    async ({ query }) => {
      const before = query.cursor === undefined ? undefined : fromCursor(query.cursor);
      const page = audit.list({ limit: Number(query.limit), before });
      return {
        entries: page.entries.map(toEntryBody),
        next_cursor: page.nextBefore === null ? null : toCursor(page.nextBefore),
      };
    },
  );
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
