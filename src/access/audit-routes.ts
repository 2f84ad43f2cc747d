import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { operations, problemResponses } from '../http/problems.ts';
import {
  checkRange,
  cursorSchema,
  nextCursor,
  nextCursorSchema,
  pageOf,
  SEVERAL,
  severalOf,
  type TypedServer,
  timeParameter,
  wholeNumber,
} from '../http/typed-server.ts';
import type { Actor } from '../lib/actor.ts';
import { iso } from '../lib/clock.ts';
import { type Authenticator, actorOf, mayContinue } from './access.ts';
import {
  AUDIT_ACTIONS,
  AUDIT_RESULTS,
  type AuditAction,
  type AuditTrail,
  type StoredEntry,
} from './audit-store.ts';

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
        'E-mail address or subject of a caller who signed in by OpenID Connect; `caller` is then `person:` and the credential_id.',
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
};

const auditSchema = z
  .object({
    entries: z.array(entrySchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of the audit')
  .meta({
    id: 'AuditPage',
    examples: [{ entries: [EXAMPLE], next_cursor: null }],
  });

function toEntryBody(entry: StoredEntry): z.output<typeof entrySchema> {
  const { seq, at, caller, credentialId, address, action, result, subject, detail } = entry;
  return {
    seq,
    at: iso(at),
    caller,
    caller_person: entry.callerPerson,
    credential_id: credentialId,
    address,
    action,
    result,
    subject,
    detail,
    email_hash: entry.emailHash,
    email_masked: entry.emailMasked,
  };
}

const NDJSON = 'application/x-ndjson';
const MAX_TEXT_CHARS = 500;

const text = z.string().min(1).max(MAX_TEXT_CHARS);

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
  .superRefine(({ format, ...query }, context) => {
    const { since, until } = query;
    checkRange(context, { since, until, name: 'until' });
    const [name] = Object.entries(query).find(([, value]) => value !== undefined) ?? [];
    if (format === undefined || name === undefined) return;
    const message = 'cannot be combined with ndjson, which has all entries';
    context.addIssue({ code: 'custom', path: [name], message });
  });

const OPERATIONS = operations('users', {
  listAudit: {
    summary: 'List the audit of changes and user lookups, newest first, or export it',
    description:
      'Append-only. All conditions apply together. A page takes a bounded time: with ' +
      'conditions it may have fewer entries than `limit`, even none, although more follow. Continue until `next_cursor` is null. ' +
      'With `format=ndjson`, the response has all entries, oldest first, one JSON object per line. The audit records exports, and the ' +
      'first list of each caller in an hour.',
    querystring: querySchema,
    response: { 200: auditSchema, ...problemResponses(507) },
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
    { config: { isExpensive: true }, schema: OPERATIONS.listAudit },
    async (request, reply) => {
      const { limit = '100', cursor, format, action: actions, ...filter } = request.query;
      if (format === undefined) {
        const page = audit.list({ ...filter, actions, ...pageOf({ limit, cursor }) });
        const entries = page.entries.map(toEntryBody);
        // After the page was read, so that the newest page does not begin with its own entry.
        if (request.method !== 'HEAD') recordRead(actorOf(request));
        return reply.send({ entries, next_cursor: nextCursor(page.nextBefore) });
      }
      if (request.method === 'HEAD') return reply.type(NDJSON).send(Readable.from([]) as never);
      audit.append(actorOf(request), clock.now(), { action: 'audit.export' });
      const lines = linesOf(audit, audit.newest, () => {
        if (mayContinue(request, authenticator)) return true;
        reply.raw.destroy();
        return false;
      });
      return reply.type(NDJSON).send(Readable.from(lines) as never);
    },
  );
}

const HOUR_MS = 3_600_000;

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

const READ_AT_ONCE = 500;

/** Yields entries up to `last` in pages. Ends early if `mayRead` returns false. */
async function* linesOf(
  audit: AuditTrail,
  last: number,
  mayRead: () => boolean,
): AsyncGenerator<string, void> {
  for (let seq = 0; seq < last && mayRead(); await setImmediate()) {
    const page = audit.after(seq, READ_AT_ONCE).filter((entry) => entry.seq <= last);
    seq = page.at(-1)?.seq ?? last;
    yield page.map((entry) => `${JSON.stringify(toEntryBody(entry))}\n`).join('');
  }
}
