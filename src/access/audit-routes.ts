import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operations, problemResponses, sendProblem } from '../http/problems.ts';
import {
  checkRange,
  cursorSchema,
  nextCursor,
  nextCursorSchema,
  pageOf,
  SEVERAL,
  severalOf,
  timeParameter,
  wholeNumber,
} from '../http/query.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { Actor } from '../lib/actor.ts';
import { iso } from '../lib/timestamps.ts';
import { type Authenticator, actorOf, mayContinue, sendEnded } from './access.ts';
import { AUDIT_ACTIONS, AUDIT_RESULTS, type AuditAction } from './audit-actions.ts';
import { type ChainCheck, checkChain, type StoredEntry } from './audit-chain.ts';
import type { AuditTrail } from './audit-store.ts';

const hashSchema = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be the 64 hexadecimal digits of a hash');

const entrySchema = z
  .object({
    seq: z.int(),
    at: z.iso.datetime().describe('ISO 8601, UTC'),
    caller: z
      .string()
      .describe(
        'Name of the credential; for a token of the upstream, "forwarded:" and a short keyed hash of it; for a command, "cli:" and the user of the system; dawatch for the server itself',
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
      .describe(
        'Id of the credential in `dawatch token list`; null for a configured credential and a forwarded token',
      ),
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
        `${AUDIT_RESULTS.join(', ')}. refused: by dawatch or the upstream; failed: the upstream returned no usable response; busy: not sent, too many lookups were in flight; done: the change is stored`,
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

const auditSchema = z
  .object({
    head: z
      .object({ seq: z.int(), hash: hashSchema })
      .nullable()
      .describe(
        'The newest entry, whose hash commits to all entries; store it elsewhere. null: there is no entry',
      ),
    entries: z.array(entrySchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of the audit')
  .meta({
    id: 'AuditPage',
    examples: [
      { head: { seq: EXAMPLE.seq, hash: EXAMPLE.hash }, entries: [EXAMPLE], next_cursor: null },
    ],
  });

const verificationSchema = z
  .object({
    intact: z.boolean(),
    entries: z
      .int()
      .describe('Number of entries; if it is not intact, of those before the first wrong one'),
    head: hashSchema.nullable().describe('The hash of the newest entry; null if it is not intact'),
    pruned: z
      .int()
      .nullable()
      .describe(
        'Number of entries that retention has deleted (`audit.keep_days`); null if it is not intact',
      ),
    seq: z
      .int()
      .nullable()
      .describe('The first wrong entry; null if it is intact, or if no single entry is wrong'),
    reason: z.string().nullable().describe('What is wrong; null if it is intact'),
  })
  .describe('The result of checking every hash of the audit')
  .meta({
    id: 'AuditVerification',
    examples: [
      { intact: true, entries: 1, pruned: 0, head: EXAMPLE.hash, seq: null, reason: null },
    ],
  });

function toEntryBody(entry: StoredEntry): z.output<typeof entrySchema> {
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

function toVerificationBody(check: ChainCheck): z.output<typeof verificationSchema> {
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

const NDJSON = 'application/x-ndjson';
const MAX_TEXT_CHARS = 500;

const text = z.string().min(1).max(MAX_TEXT_CHARS);

/**
 * The conditions of a list. They do not apply to exports: an export has all entries, because each
 * hash covers the preceding one.
 */
const conditions = {
  caller: text
    .optional()
    .describe('Only entries of this caller: name of a credential, or address of a person'),
  email: text
    .optional()
    .describe('Only entries about the person with this e-mail address, or this `email_hash`'),
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
      .literal('ndjson')
      .optional()
      .describe('All entries, without limit, cursor and conditions'),
    ...conditions,
    limit: wholeNumber({ min: 1, max: 1_000 })
      .optional()
      .describe('A whole number from 1 to 1000; 100 if absent'),
    cursor: cursorSchema.optional(),
  })
  .superRefine(({ since, until }, context) => checkRange(context, { since, until, name: 'until' }));

const OPERATIONS = operations('users', {
  listAudit: {
    summary: 'List the audit of changes and user lookups, newest first, or export it',
    description:
      'Append-only and chained: docs/audit.md describes the hash. All conditions apply together. A page takes a bounded time: with ' +
      'conditions it may have fewer entries than `limit`, even none, although more follow. Continue until `next_cursor` is null. ' +
      'With `format=ndjson`, the response has all entries, oldest first, one JSON object per line. The audit records exports, and the ' +
      'first list of each caller in an hour.',
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
        .describe(
          'The hash of an entry that must exist, such as an earlier head. Detects removed entries',
        ),
    }),
    response: { 200: verificationSchema },
  },
});

export function registerAudit(
  app: TypedServer,
  deps: {
    ledger: { audit: AuditTrail };
    clock: { now(): number };
    authenticator: Authenticator;
  },
): void {
  const { audit } = deps.ledger;
  const { clock, authenticator } = deps;
  const recordRead = readRecorder(deps);
  app.get(
    '/v1/audit',
    { config: { isExpensive: true, isLong: isExport }, schema: OPERATIONS.listAudit },
    async (request, reply) => {
      const { limit = '100', cursor, format, action: actions, ...filter } = request.query;
      if (format === undefined) {
        const page = audit.list({ ...filter, actions, ...pageOf({ limit, cursor }) });
        const entries = page.entries.map(toEntryBody);
        const head = audit.head() ?? null;
        // After the page was read, so that the newest page does not begin with its own entry.
        if (request.method !== 'HEAD') recordRead(actorOf(request));
        return reply.send({ head, entries, next_cursor: nextCursor(page.nextBefore) });
      }
      const [pointer] = (
        [...Object.keys(conditions), 'limit', 'cursor'] as (keyof typeof request.query)[]
      ).filter((name) => request.query[name] !== undefined);
      if (pointer !== undefined) {
        const detail = 'cannot be combined with ndjson, which has all entries';
        return sendProblem(reply, {
          status: 400,
          detail: `query ${pointer}: ${detail}`,
          errors: [{ pointer, detail }],
        });
      }
      if (request.method === 'HEAD') return reply.type(NDJSON).send(Readable.from([]) as never);
      audit.append(actorOf(request), clock.now(), { action: 'audit.export' });
      // Later entries may not be on the disk when they are read.
      const pages = pagesOf(audit, audit.head()?.seq);
      const lines = linesOf(pages, () => {
        if (mayContinue(request, authenticator)) return true;
        reply.raw.destroy();
        return false;
      });
      return reply.type(NDJSON).send(Readable.from(lines) as never);
    },
  );

  let isStopping = false;
  app.addHook('preClose', async () => {
    isStopping = true;
  });
  const config = { isLong: true, staysOpen: true };
  app.get(
    '/v1/audit/verify',
    { config, schema: OPERATIONS.verifyAudit },
    async (request, reply) => {
      const isOver = () => isStopping || reply.raw.destroyed;
      const check = await checkChain(entriesOf(audit, isOver), request.query.expect_head);
      if (!mayContinue(request, authenticator)) return sendEnded(reply);
      if (!isOver()) return reply.send(toVerificationBody(check));
      const detail = 'the server is stopping: the audit was not checked to its end';
      return sendProblem(reply.header('retry-after', 5), { status: 503, detail });
    },
  );
}

const HOUR_MS = 3_600_000;

/** Returns a function that adds an entry for the first list of a caller in an hour. */
function readRecorder({
  ledger: { audit },
  clock,
}: {
  ledger: { audit: AuditTrail };
  clock: { now(): number };
}): (reader: Actor) => void {
  const readers = new Set<string>();
  let hour = 0;
  return (reader) => {
    const now = clock.now();
    const current = Math.floor(now / HOUR_MS);
    if (current !== hour) readers.clear();
    hour = current;
    const key = `${reader.credentialId} ${reader.name}`;
    if (readers.has(key)) return;
    audit.append(reader, now, { action: 'audit.read' });
    readers.add(key);
  };
}

function isExport({ query }: FastifyRequest): boolean {
  return (query as { format?: string }).format !== undefined;
}

const READ_AT_ONCE = 500;

/** Yields all entries up to `last`, and serves other requests after each page. */
async function* pagesOf(
  audit: AuditTrail,
  last = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<StoredEntry[], void> {
  for (let page = audit.after(0, READ_AT_ONCE); page.length > 0; ) {
    yield page.filter(({ seq }) => seq <= last);
    const { seq } = page.at(-1) as StoredEntry;
    if (seq >= last) return;
    await setImmediate();
    page = audit.after(seq, READ_AT_ONCE);
  }
}

async function* linesOf(
  pages: AsyncIterable<StoredEntry[]>,
  mayRead: () => boolean,
): AsyncGenerator<string, void> {
  for await (const page of pages) {
    if (!mayRead()) return;
    yield page.map((entry) => `${JSON.stringify(toEntryBody(entry))}\n`).join('');
  }
}

async function* entriesOf(
  audit: AuditTrail,
  isOver: () => boolean,
): AsyncGenerator<StoredEntry, void> {
  for await (const page of pagesOf(audit)) {
    if (isOver()) return;
    yield* page;
  }
}
