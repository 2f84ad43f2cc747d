import { z } from 'zod';
import { actorOf } from '../access/access.ts';
import type { AuditTrail } from '../access/audit-store.ts';
import { operations, problemResponses, sendInvalidField, sendProblem } from '../http/problems.ts';
import {
  nextCursor,
  nextCursorSchema,
  pageOf,
  pageParameters,
  rowId,
  type TypedServer,
  timeSchema,
} from '../http/typed-server.ts';
import { type Clock, iso, isoOrNull } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import { alertRuleSchema } from '../notifications/event-body.ts';
import { linkTo } from '../notifications/message.ts';
import { type Alerts, MAX_MUTES, type Mute, type MutedAlert } from './alerts-store.ts';
import { type AlertCondition, alertPath } from './rules.ts';

const MAX_SUBJECT_CHARS = 300;
const MAX_REASON_CHARS = 200;

const alertStateSchema = z
  .enum(['firing', 'resolved', 'all'])
  .describe('firing: alerts whose condition holds, also muted ones')
  .meta({ id: 'AlertState' });

const muteIdSchema = rowId('a mute', '3');

const moment = z.iso.datetime({ offset: true, error: 'must be a time like 2026-01-02T03:04:05Z' });

const newMuteSchema = z
  .strictObject({
    rule: alertRuleSchema
      .nullable()
      .default(null)
      .describe('Only alerts of this rule; null: all alerts'),
    subject: z
      .string()
      .min(1)
      .max(MAX_SUBJECT_CHARS)
      .nullable()
      .default(null)
      .describe(
        'Only the alert about this subject, such as an upstream; requires `rule`. null: all alerts of the rule',
      ),
    until: moment.describe('End, within 366 days from now'),
    reason: z
      .string()
      .max(MAX_REASON_CHARS)
      .refine(
        (text) => /^[^\p{C}\p{Zl}\p{Zp}]*$/u.test(text),
        'must be a single line of printable characters',
      )
      .default('')
      .describe('A free text for operators'),
  })
  .refine((mute) => mute.rule !== null || mute.subject === null, {
    path: ['subject'],
    error: 'requires a rule',
  })
  .meta({
    id: 'NewMute',
    examples: [
      {
        rule: 'stuck',
        subject: 'default',
        until: '2026-12-02T06:00:00Z',
        reason: 'the chain is halted',
      },
    ],
  });

const alertSchema = z
  .object({
    id: z
      .int()
      .describe(
        'Identifies this occurrence. When the same condition begins again, its alert has another id. 0: the alert is not recorded yet, because the ledger cannot be written',
      ),
    rule: alertRuleSchema,
    subject: z
      .string()
      .describe('The affected upstream or destination, or `ledger`, `redis`, `workers` or `all`'),
    summary: z.string().describe('One sentence for operators'),
    count: z.int().nullable().describe('Number of affected submissions or deliveries'),
    since: timeSchema.describe('Since when the condition has held'),
    firing: z.boolean().describe('Whether the condition holds'),
    resolved_at: timeSchema
      .nullable()
      .describe('When the condition ended; null while it is firing'),
    muted_until: timeSchema
      .nullable()
      .describe('End of the mute that covers it now; null: it is not muted'),
    link: z
      .string()
      .describe(
        'The dashboard page about it: a path on this server, or an address if `server.public_url` is set',
      ),
  })
  .describe('An alert')
  .meta({ id: 'Alert' });

export const alertListSchema = z
  .object({ alerts: z.array(alertSchema).describe('Newest first'), next_cursor: nextCursorSchema })
  .describe('A page of alerts')
  .meta({ id: 'AlertPage' });

export const muteSchema = z
  .object({
    id: z.int(),
    rule: alertRuleSchema.nullable().describe('null: all alerts'),
    subject: z.string().nullable().describe('null: all alerts of the rule'),
    until: timeSchema,
    reason: z.string(),
    created_at: timeSchema,
    created_by: z.string().describe('Name of the credential'),
  })
  .describe('Alerts that it covers are recorded and not sent until its end')
  .meta({ id: 'Mute' });

export const muteListSchema = z
  .object({ mutes: z.array(muteSchema).describe('Newest first') })
  .describe('All mutes that have not ended')
  .meta({ id: 'MuteList' });

function toAlertBody(
  alert: MutedAlert,
  publicUrl: string | undefined,
): z.output<typeof alertSchema> {
  const { mutedUntil, resolvedAt, since } = alert;
  const path = alertPath(alert);
  return {
    id: alert.id,
    rule: alert.rule,
    subject: alert.subject,
    summary: alert.summary,
    count: alert.count,
    since: iso(since),
    firing: resolvedAt === null,
    resolved_at: isoOrNull(resolvedAt),
    muted_until: isoOrNull(mutedUntil),
    link: publicUrl === undefined ? `/${path}` : linkTo(publicUrl, path),
  };
}

function toMuteBody({ until, createdAt, createdBy, ...mute }: Mute): z.output<typeof muteSchema> {
  return { ...mute, until: iso(until), created_at: iso(createdAt), created_by: createdBy };
}

const UNRECORDED = {
  id: 0,
  sentAt: null,
  mutedUntil: null,
  resolvedAt: null,
};

const READ = { roles: ['service', 'operator'] } as const;

const OPERATIONS = operations('alerts', {
  listAlerts: {
    summary: 'List alerts, newest first',
    description: 'Resolved alerts are kept for 30 days, at most 10,000.',
    querystring: z.strictObject({
      state: alertStateSchema.default('firing').describe('Only alerts in this state'),
      ...pageParameters,
    }),
    response: { 200: alertListSchema },
  },
});

type AlertDeps = {
  ledger: { alerts: Alerts; audit: AuditTrail };
  /** The alert that cannot be recorded because the ledger cannot be written. */
  unrecorded: () => (AlertCondition & { since: number }) | undefined;
  clock: Clock;
  publicUrl: string | undefined;
};

export function registerAlerts(
  app: TypedServer,
  { ledger, unrecorded, clock, publicUrl }: AlertDeps,
): void {
  const bodyOf = (alert: MutedAlert) => toAlertBody(alert, publicUrl);

  // The list does not wait for a disk whose fault it may report.
  const config = READ;
  app.get('/v1/alerts', { config, schema: OPERATIONS.listAlerts }, async ({ query }) => {
    const { before, limit } = pageOf(query);
    const isFirst = before === undefined && query.state !== 'resolved';
    const inMemory = [isFirst ? unrecorded() : undefined].flatMap((one) => one ?? []);
    const page = ledger.alerts.list({
      state: query.state,
      before,
      limit: limit - inMemory.length,
      now: clock.now(),
    });
    return {
      alerts: [...inMemory.map((one) => ({ ...one, ...UNRECORDED })), ...page.alerts].map(bodyOf),
      next_cursor: nextCursor(page.nextBefore),
    };
  });
}

function aboutOf({ rule, subject }: Mute): string {
  return rule === null ? 'all alerts' : escapeText([rule, subject].filter(Boolean).join(' '));
}

const MAX_AHEAD_MS = 366 * 86_400_000;

const muteParams = z.strictObject({ id: muteIdSchema });

const MUTE_OPERATIONS = operations('alerts', {
  createMute: {
    summary: 'Mute alerts until a time',
    description:
      'Alerts that it covers are recorded and not sent. Those that began meanwhile and still fire at its end are sent then. The end of an alert is always sent if its beginning was. Audited.',
    body: newMuteSchema,
    response: { 201: muteSchema, ...problemResponses(409, 507) },
  },
  listMutes: {
    summary: 'List the mutes that have not ended, newest first',
    querystring: z.strictObject({}),
    response: { 200: muteListSchema },
  },
  deleteMute: {
    summary: 'End a mute',
    description: 'Alerts that began while it was active and still fire are sent. Audited.',
    params: muteParams,
    response: { 204: z.null().describe('The mute has ended'), ...problemResponses(404, 507) },
  },
});

export function registerMutes(
  app: TypedServer,
  { ledger, clock }: { ledger: { alerts: Alerts; audit: AuditTrail }; clock: Clock },
): void {
  const { alerts, audit } = ledger;
  const entryOf = (action: 'mutes.create' | 'mutes.delete') => (mute: Mute | undefined) =>
    mute && {
      action,
      subject: String(mute.id),
      detail: `${aboutOf(mute)}, until ${iso(mute.until)}`,
    };

  app.post('/v1/mutes', { schema: MUTE_OPERATIONS.createMute }, async (request, reply) => {
    const now = clock.now();
    const until = Date.parse(request.body.until);
    if (until <= now) return sendInvalidField(reply, 'until', 'must be in the future');
    if (until > now + MAX_AHEAD_MS)
      return sendInvalidField(reply, 'until', 'must be within 366 days from now');
    const actor = actorOf(request);
    const add = () => alerts.addMute({ ...request.body, until }, actor.name, now);
    const mute = audit.change(actor, now, add, entryOf('mutes.create'));
    if (mute) return reply.code(201).header('location', `mutes/${mute.id}`).send(toMuteBody(mute));
    const detail = `there are ${MAX_MUTES} mutes that have not ended: delete some of them first`;
    return sendProblem(reply, 409, detail);
  });

  app.get(
    '/v1/mutes',
    { config: { roles: ['operator'] }, schema: MUTE_OPERATIONS.listMutes },
    async () => ({ mutes: alerts.mutes(clock.now()).map(toMuteBody) }),
  );

  app.delete('/v1/mutes/:id', { schema: MUTE_OPERATIONS.deleteMute }, async (request, reply) => {
    const { id } = request.params;
    const now = clock.now();
    const remove = () => alerts.deleteMute(Number(id), now);
    const deleted = audit.change(actorOf(request), now, remove, entryOf('mutes.delete'));
    if (deleted) return reply.code(204).send(null);
    return sendProblem(reply, 404, `there is no mute ${id} that has not ended`);
  });
}
