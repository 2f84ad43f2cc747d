import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { type ErasureTarget, NOT_COVERED } from '../../../domain/audit/personal-value.ts';
import type { Clock } from '../../../domain/clock.ts';
import type { Ledger } from '../../../ledger/ledger.ts';
import { actorOf } from '../../access/access.ts';
import type { TypedServer } from '../../ports.ts';
import { operations, problemResponses, sendProblem } from '../../problems.ts';
import { emailSchema } from '../user-access.ts';

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
      events: countSchema.describe('The address was replaced in events of alerts'),
      alerts: countSchema.describe('The address was replaced in alerts, and in the reasons of mutes'),
      attempts: countSchema.describe('Responses of receivers were removed, or the address was replaced in them'),
      report_rows: countSchema.describe('Rows of reports for the value, which were added to the other values'),
      audit_persons: countSchema.describe('Lookups of the address: its hash and masked form were deleted'),
      people: countSchema.describe(
        'People who signed in with the address: their names were deleted, and their credentials revoked',
      ),
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
        erased: {
          submissions: 3,
          history: 0,
          events: 0,
          alerts: 0,
          attempts: 2,
          report_rows: 0,
          audit_persons: 1,
          people: 0,
        },
        log_truncated: true,
        not_covered: NOT_COVERED,
      },
    ],
  });

const OPERATIONS = operations('users', {
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

/** The pause between two steps of an erasure, for tracking and polling. */
const STEP_PAUSE_MS = 5;

/** Erases the data of a person in steps, and serves other requests between the steps. Erasures run one after the other. */
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
