import { Readable } from 'node:stream';
import { setImmediate, setTimeout as wait } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { AUDIT_ACTIONS, AUDIT_RESULTS } from '../../domain/audit/actions.ts';
import { type ErasureTarget, NOT_COVERED } from '../../domain/audit/personal-value.ts';
import type { Clock } from '../../domain/clock.ts';
import { nearestTime } from '../../domain/stored.ts';
import type { AuditTrail } from '../../ledger/access/audit.ts';
import type { StoredEntry } from '../../ledger/access/audit-chain.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { actorOf } from '../access/access.ts';
import type { TypedServer } from '../ports.ts';
import { operations, problemResponses, sendProblem } from '../problems.ts';
import { cursorSchema, nextCursor, nextCursorSchema, pageOf, wholeNumber } from '../query.ts';
import { emailSchema } from './user-access.ts';

const hashSchema = z.string().regex(/^[0-9a-f]{64}$/);

const entrySchema = z
  .object({
    seq: z.int(),
    at: z.iso.datetime().describe('ISO 8601, UTC'),
    caller: z
      .string()
      .describe(
        'Name of the credential; for a token of the upstream, "forwarded:" and a short keyed hash of it; for a command, "cli:" and the user of the system; SIGHUP for a signal; dawatch for the server itself',
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
        `${AUDIT_RESULTS.join(', ')}. refused: by dawatch or the upstream; failed: the upstream returned no usable response; busy: not sent, too many lookups were in flight; reloaded: changed settings were applied; started: of an erasure, whose end has an entry of its own; done: the change is stored`,
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
    email_salt: z.string().nullable().describe('With email_hash and email_masked, the input of email_digest'),
    email_digest: z
      .string()
      .nullable()
      .describe('Covered by `hash`; stays when the three fields before it are erased, and then reveals nothing'),
    hash: z
      .string()
      .nullable()
      .describe('SHA-256 of the hash before it and of this entry; null only if something else wrote the entry'),
  })
  .describe('An entry of the audit')
  .meta({ id: 'AuditEntry' });

const EXAMPLE = {
  seq: 1,
  at: '2026-01-02T03:04:05.123Z',
  caller: 'support desk',
  credential_id: 3,
  address: '192.0.2.1',
  action: 'users.get',
  result: 'found',
  subject: null,
  detail: null,
  email_hash: '5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592',
  email_masked: 'a…@example.com',
  email_salt: '1f0e6c2b1f0e6c2b1f0e6c2b1f0e6c2b1f0e6c2b1f0e6c2b1f0e6c2b1f0e6c2b',
  email_digest: '9c1185a5c5e9fc54612808977ee8f548b2258d319c1185a5c5e9fc54612808ab',
  hash: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
};

const auditSchema = z
  .object({
    head: z
      .object({ seq: z.int(), hash: hashSchema })
      .nullable()
      .describe('The newest entry, whose hash commits to all entries. Note it elsewhere; null: there is no entry'),
    entries: z.array(entrySchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of the audit')
  .meta({
    id: 'AuditPage',
    examples: [{ head: { seq: EXAMPLE.seq, hash: EXAMPLE.hash }, entries: [EXAMPLE], next_cursor: null }],
  });

const erasureSchema = z
  .strictObject({
    email: emailSchema.optional(),
    metadata: z
      .record(z.string().min(1), z.union([z.string().min(1), z.number(), z.boolean()]))
      .refine((entries) => Object.keys(entries).length === 1, 'exactly one entry is required')
      .optional()
      .describe('One entry; values are compared as text'),
  })
  .refine(({ email, metadata }) => (email === undefined) !== (metadata === undefined), {
    error: 'exactly one of email and metadata is required',
  })
  .describe('The person: an e-mail address, or an entry of the metadata of submissions')
  .meta({ id: 'NewErasure', examples: [{ email: 'ada@example.com' }, { metadata: { customer: '8831' } }] });

const countSchema = z.int().min(0);

const erasedSchema = z
  .object({
    erased: z.object({
      submissions: countSchema.describe('Their metadata was removed, and a callback_url that contains the address'),
      history: countSchema.describe('The address was replaced in responses of the upstream'),
      events: countSchema.describe('The address was replaced in alerts'),
      attempts: countSchema.describe('Responses of receivers were removed, or the address was replaced in them'),
      report_rows: countSchema.describe('Rows of reports for the value, which were added to the other values'),
      audit_persons: countSchema.describe('Lookups of the address: its hash and masked form were deleted'),
    }),
    log_truncated: z
      .boolean()
      .describe(
        'false: a reader, such as a backup, kept the write-ahead log, which has earlier rows. Repeat the request',
      ),
    not_covered: z.array(z.string()).describe('Copies that must be deleted elsewhere'),
  })
  .describe('Rows that were changed or deleted')
  .meta({
    id: 'Erasure',
    examples: [
      {
        erased: { submissions: 3, history: 0, events: 0, attempts: 2, report_rows: 0, audit_persons: 1 },
        log_truncated: true,
        not_covered: NOT_COVERED,
      },
    ],
  });

const NDJSON = 'application/x-ndjson';

const OPERATIONS = operations('users', {
  listAudit: {
    summary: 'List the audit of changes and user lookups, newest first, or export it',
    description:
      'Append-only and chained: docs/audit.md describes the hash. With `format=ndjson`, or `Accept: application/x-ndjson`, ' +
      'the response has all entries, oldest first, one JSON object per line; the export is audited itself.',
    querystring: z.strictObject({
      format: z
        .enum(['json', 'ndjson'])
        .meta({ id: 'AuditFormat' })
        .optional()
        .describe('ndjson: all entries, without limit and cursor'),
      limit: wholeNumber({ min: 1, max: 1_000 }).optional().describe('A whole number from 1 to 1000; 100 if absent'),
      cursor: cursorSchema.optional(),
    }),
    response: { 200: auditSchema, ...problemResponses(507) },
  },
  createErasure: {
    summary: "Erase a person's data",
    description:
      'Removes the metadata of submissions with the given entry, or with the e-mail address anywhere in it; tracking continues. ' +
      'Replaces the address in responses of the upstream and of receivers, and deletes it from the audit. Audited without the value. ' +
      '`dawatch erase --check` proves it by searching every byte of the ledger.',
    body: erasureSchema,
    response: { 200: erasedSchema, ...problemResponses(507) },
  },
});

export function registerAudit(
  app: TypedServer,
  { ledger: { audit }, clock }: { ledger: Pick<Ledger, 'audit'>; clock: Pick<Clock, 'now'> },
): void {
  app.get('/v1/audit', { config: { isExpensive: true }, schema: OPERATIONS.listAudit }, async (request, reply) => {
    const { limit = '100', cursor, format } = request.query;
    if (format !== 'ndjson' && (format === 'json' || !acceptsNdjson(request))) {
      const page = audit.list(pageOf({ limit, cursor }));
      const entries = page.entries.map(toEntryBody);
      return reply.send({ head: audit.head() ?? null, entries, next_cursor: nextCursor(page.nextBefore) });
    }
    const [pointer] = (['limit', 'cursor'] as const).filter((name) => request.query[name] !== undefined);
    if (pointer !== undefined) {
      const detail = 'can not be combined with ndjson, which has all entries';
      return sendProblem(reply, { status: 400, detail: `query ${pointer}: ${detail}`, errors: [{ pointer, detail }] });
    }
    if (request.method === 'HEAD') return reply.type(NDJSON).send(Readable.from([]) as never);
    audit.append(actorOf(request), clock.now(), { action: 'audit.export' });
    return reply.type(NDJSON).send(Readable.from(linesOf(audit)) as never);
  });
}

/** The pause between two steps of an erasure, for tracking and polling. */
const STEP_PAUSE_MS = 5;

/** Erases the data of a person in steps, between which other requests are served. Requests wait for the one before them. */
export function registerErasures(
  app: TypedServer,
  { ledger: { erasure }, clock }: { ledger: Pick<Ledger, 'erasure'>; clock: Pick<Clock, 'now'> },
): void {
  let last: Promise<unknown> = Promise.resolve();
  let isStopping = false;
  app.addHook('preClose', async () => {
    isStopping = true;
  });
  /** Returns undefined if the server stops before the end. */
  const complete = async (options: Parameters<typeof erasure.run>[0]) => {
    const run = erasure.run(options);
    try {
      while (!isStopping) {
        const step = run.next();
        if (step.done) return step.value;
        await wait(STEP_PAUSE_MS);
      }
      return undefined;
    } finally {
      run.return(undefined as never);
    }
  };
  const config = { staysOpen: true };
  app.post('/v1/erasures', { config, schema: OPERATIONS.createErasure }, async (request, reply) => {
    const { email, metadata } = request.body;
    const [[key = '', value = ''] = []] = Object.entries(metadata ?? {});
    const target: ErasureTarget =
      email === undefined ? { kind: 'metadata', key, value: String(value) } : { kind: 'email', email };
    const options = { target, actor: actorOf(request), now: () => clock.now() };
    const ending = last.then(() => complete(options));
    last = ending.catch(() => undefined);
    const result = await ending;
    if (result)
      return reply.send({ erased: result.erased, log_truncated: result.logTruncated, not_covered: NOT_COVERED });
    const detail = 'the server is stopping: the erasure is incomplete, repeat it';
    return sendProblem(reply.header('retry-after', 5), { status: 503, detail });
  });
}

function acceptsNdjson({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').split(',').some((type) => type.split(';')[0]?.trim().toLowerCase() === NDJSON);
}

const EXPORTED_AT_ONCE = 500;

/** Yields all entries as JSON lines, a page at a time; other requests are served between two pages. */
async function* linesOf(audit: AuditTrail): AsyncGenerator<string, void> {
  for (let page = audit.after(0, EXPORTED_AT_ONCE); page.length > 0; ) {
    yield page.map((entry) => `${JSON.stringify(toEntryBody(entry))}\n`).join('');
    await setImmediate();
    page = audit.after(page.at(-1)?.seq ?? 0, EXPORTED_AT_ONCE);
  }
}

function toEntryBody(entry: StoredEntry): z.output<typeof entrySchema> {
  const { seq, at, caller, credentialId, address, action, result, subject, detail, hash } = entry;
  return {
    seq,
    at: new Date(nearestTime(at)).toISOString(),
    caller,
    credential_id: credentialId,
    address,
    action,
    result,
    subject,
    detail,
    email_hash: entry.emailHash,
    email_masked: entry.emailMasked,
    email_salt: entry.salt,
    email_digest: entry.personDigest,
    hash,
  };
}
