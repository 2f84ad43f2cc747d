import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { AUDIT_ACTIONS, type AuditAction } from '../../../domain/audit/actions.ts';
import type { Clock } from '../../../domain/clock.ts';
import type { AuditTrail } from '../../../ledger/access/audit.ts';
import { checkChain, type StoredEntry } from '../../../ledger/access/audit-chain.ts';
import type { Ledger } from '../../../ledger/ledger.ts';
import { actorOf } from '../../access/access.ts';
import type { TypedServer } from '../../ports.ts';
import { operations, problemResponses, sendProblem } from '../../problems.ts';
import {
  checkRange,
  cursorSchema,
  nextCursor,
  pageOf,
  SEVERAL,
  severalOf,
  timeParameter,
  wholeNumber,
} from '../../query.ts';
import { auditSchema, hashSchema, toEntryBody, toVerificationBody, verificationSchema } from './audit-body.ts';

const NDJSON = 'application/x-ndjson';
const MAX_TEXT_CHARS = 500;

const text = z.string().min(1).max(MAX_TEXT_CHARS);

/** The conditions of a list. They do not apply to exports: an export has all entries, because each hash covers the preceding one. */
const conditions = {
  caller: text.optional().describe('Only entries of this caller'),
  action: severalOf(Object.keys(AUDIT_ACTIONS) as AuditAction[])
    .optional()
    .describe('Only these actions, separated by commas or repeated')
    .meta({ ...SEVERAL, examples: ['webhooks.create,webhooks.rotate'] }),
  subject: text.optional().describe('Only entries about this subject'),
  since: timeParameter.optional().describe('Only entries at this time or later'),
  until: timeParameter.optional().describe('Only entries before this time'),
};

const querySchema = z
  .strictObject({
    format: z
      .enum(['json', 'ndjson'])
      .meta({ id: 'AuditFormat' })
      .optional()
      .describe('ndjson: all entries, without limit, cursor and conditions'),
    ...conditions,
    limit: wholeNumber({ min: 1, max: 1_000 }).optional().describe('A whole number from 1 to 1000; 100 if absent'),
    cursor: cursorSchema.optional(),
  })
  .superRefine(({ since, until }, context) => checkRange(context, { since, until, name: 'until' }));

const OPERATIONS = operations('users', {
  listAudit: {
    summary: 'List the audit of changes and user lookups, newest first, or export it',
    description:
      'Append-only and chained: docs/audit.md describes the hash. All conditions apply together. A page takes a bounded time: with ' +
      'conditions it may have fewer entries than `limit`, even none, although more follow. Continue until `next_cursor` is null. ' +
      'With `format=ndjson`, or `Accept: application/x-ndjson`, the response has all entries, oldest first, one JSON object per ' +
      'line. The audit records the export.',
    querystring: querySchema,
    response: { 200: auditSchema, ...problemResponses(507) },
  },
  verifyAudit: {
    summary: 'Check every hash of the audit',
    description:
      'Reads the whole audit while other requests are served. `dawatch audit verify` does the same without the server.',
    querystring: z.strictObject({
      expect_head: hashSchema
        .optional()
        .describe('The hash of an entry that must exist, such as an earlier head. Detects removed entries'),
    }),
    response: { 200: verificationSchema },
  },
});

export function registerAudit(
  app: TypedServer,
  { ledger: { audit }, clock }: { ledger: Pick<Ledger, 'audit'>; clock: Pick<Clock, 'now'> },
): void {
  app.get('/v1/audit', { config: { isExpensive: true }, schema: OPERATIONS.listAudit }, async (request, reply) => {
    const { limit = '100', cursor, format, action: actions, ...filter } = request.query;
    if (format !== 'ndjson' && (format === 'json' || !acceptsNdjson(request))) {
      const page = audit.list({ ...filter, actions, ...pageOf({ limit, cursor }) });
      const entries = page.entries.map(toEntryBody);
      return reply.send({ head: audit.head() ?? null, entries, next_cursor: nextCursor(page.nextBefore) });
    }
    const [pointer] = ([...Object.keys(conditions), 'limit', 'cursor'] as (keyof typeof request.query)[]).filter(
      (name) => request.query[name] !== undefined,
    );
    if (pointer !== undefined) {
      const detail = 'cannot be combined with ndjson, which has all entries';
      return sendProblem(reply, { status: 400, detail: `query ${pointer}: ${detail}`, errors: [{ pointer, detail }] });
    }
    if (request.method === 'HEAD') return reply.type(NDJSON).send(Readable.from([]) as never);
    audit.append(actorOf(request), clock.now(), { action: 'audit.export' });
    // Later entries may not be on the disk when they are read.
    return reply.type(NDJSON).send(Readable.from(linesOf(audit, audit.head()?.seq ?? 0)) as never);
  });

  let isStopping = false;
  app.addHook('preClose', async () => {
    isStopping = true;
  });
  const config = { isExpensive: true, staysOpen: true };
  app.get('/v1/audit/verify', { config, schema: OPERATIONS.verifyAudit }, async (request, reply) => {
    const isOver = () => isStopping || reply.raw.destroyed;
    const check = await checkChain(entriesOf(audit, isOver), request.query.expect_head);
    if (!isOver()) return reply.send(toVerificationBody(check));
    const detail = 'the server is stopping: the audit was not checked to its end';
    return sendProblem(reply.header('retry-after', 5), { status: 503, detail });
  });
}

function acceptsNdjson({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').split(',').some((type) => type.split(';')[0]?.trim().toLowerCase() === NDJSON);
}

const READ_AT_ONCE = 500;

/** Yields all entries up to `last`, and serves other requests after each page. */
async function* pagesOf(audit: AuditTrail, last = Number.MAX_SAFE_INTEGER): AsyncGenerator<StoredEntry[], void> {
  for (let page = audit.after(0, READ_AT_ONCE); page.length > 0; ) {
    yield page.filter(({ seq }) => seq <= last);
    const { seq } = page.at(-1) as StoredEntry;
    if (seq >= last) return;
    await setImmediate();
    page = audit.after(seq, READ_AT_ONCE);
  }
}

async function* linesOf(audit: AuditTrail, last: number): AsyncGenerator<string, void> {
  for await (const page of pagesOf(audit, last))
    yield page.map((entry) => `${JSON.stringify(toEntryBody(entry))}\n`).join('');
}

async function* entriesOf(audit: AuditTrail, isOver: () => boolean): AsyncGenerator<StoredEntry, void> {
  for await (const page of pagesOf(audit)) {
    if (isOver()) return;
    yield* page;
  }
}
