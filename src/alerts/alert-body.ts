import { z } from 'zod';
import { nextCursorSchema, rowId, timeSchema } from '../http/query.ts';
import { iso } from '../lib/timestamps.ts';
import type { Mute } from '../notifications/alert.ts';
import { alertPath, linkTo } from '../notifications/dashboard-links.ts';
import { alertRuleSchema } from '../notifications/event-body.ts';
import type { MutedAlert } from './alerts-store.ts';

const MAX_SUBJECT_CHARS = 300;
const MAX_REASON_CHARS = 200;

export const alertStateSchema = z
  .enum(['firing', 'resolved', 'all'])
  .describe('firing: alerts whose condition holds, also acknowledged and muted ones')
  .meta({ id: 'AlertState' });

export const alertIdSchema = rowId('an alert', '17');

export const muteIdSchema = rowId('a mute', '3');

const moment = z.iso.datetime({ offset: true, error: 'must be a time like 2026-01-02T03:04:05Z' });

export const newMuteSchema = z
  .strictObject({
    rule: alertRuleSchema
      .nullable()
      .default(null)
      .describe('Only alerts of this rule; null: all alerts, a maintenance window'),
    subject: z
      .string()
      .min(1)
      .max(MAX_SUBJECT_CHARS)
      .nullable()
      .default(null)
      .describe(
        'Only the alert about this subject, such as an upstream; requires `rule`. null: all alerts of the rule',
      ),
    from: moment.optional().describe('Start; default: now'),
    until: moment.describe('End, after the start and within 366 days from now'),
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
      {
        from: '2026-12-05T22:00:00Z',
        until: '2026-12-06T02:00:00Z',
        reason: 'maintenance of the upstream',
      },
    ],
  });

const EXAMPLE = {
  id: 17,
  rule: 'upstream_down',
  subject: 'default',
  summary: 'The upstream default is not responding; 151 submissions are waiting for it',
  count: 151,
  since: '2026-01-02T03:04:05.123Z',
  firing: true,
  resolved_at: null,
  acknowledged: { at: '2026-01-02T03:10:00.000Z', by: 'on call' },
  muted_until: null,
  link: 'https://dawatch.example.com/#/',
} as const;

const acknowledgementSchema = z
  .object({ at: timeSchema, by: z.string().describe('Name of the credential') })
  .describe('When an alert was acknowledged. No reminders are sent for it')
  .meta({ id: 'Acknowledgement' });

export const alertSchema = z
  .object({
    id: z
      .int()
      .describe(
        'Identifies this occurrence. When the same condition begins again, its alert has another id',
      ),
    rule: alertRuleSchema,
    subject: z.string().describe('The affected upstream or destination, or `ledger` or `all`'),
    summary: z.string().describe('One sentence for operators'),
    count: z.int().nullable().describe('Number of affected submissions or deliveries'),
    since: timeSchema.describe('Since when the condition has held'),
    firing: z.boolean().describe('Whether the condition holds'),
    resolved_at: timeSchema
      .nullable()
      .describe('When the condition ended; null while it is firing'),
    acknowledged: acknowledgementSchema.nullable(),
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
  .meta({ id: 'Alert', examples: [EXAMPLE] });

export const alertListSchema = z
  .object({ alerts: z.array(alertSchema).describe('Newest first'), next_cursor: nextCursorSchema })
  .describe('A page of alerts')
  .meta({ id: 'AlertPage', examples: [{ alerts: [EXAMPLE], next_cursor: null }] });

const MUTE_EXAMPLE = {
  id: 3,
  rule: 'stuck',
  subject: 'default',
  from: '2026-12-02T03:00:00.000Z',
  until: '2026-12-02T06:00:00.000Z',
  active: true,
  reason: 'the chain is halted',
  created_at: '2026-12-02T03:00:00.000Z',
  created_by: 'on call',
} as const;

export const muteSchema = z
  .object({
    id: z.int(),
    rule: alertRuleSchema.nullable().describe('null: all alerts, a maintenance window'),
    subject: z.string().nullable().describe('null: all alerts of the rule'),
    from: timeSchema,
    until: timeSchema,
    active: z.boolean().describe('Whether it has started'),
    reason: z.string(),
    created_at: timeSchema,
    created_by: z.string().describe('Name of the credential'),
  })
  .describe('A time in which alerts are recorded and not sent')
  .meta({ id: 'Mute', examples: [MUTE_EXAMPLE] });

export const muteListSchema = z
  .object({ mutes: z.array(muteSchema).describe('Newest first'), next_cursor: nextCursorSchema })
  .describe('A page of mutes')
  .meta({ id: 'MutePage', examples: [{ mutes: [MUTE_EXAMPLE], next_cursor: null }] });

export function toAlertBody(
  alert: MutedAlert,
  publicUrl: string | undefined,
): z.output<typeof alertSchema> {
  const { acknowledgedAt, acknowledgedBy, mutedUntil, resolvedAt, since } = alert;
  const path = alertPath(alert);
  return {
    id: alert.id,
    rule: alert.rule,
    subject: alert.subject,
    summary: alert.summary,
    count: alert.count,
    since: iso(since),
    firing: resolvedAt === null,
    resolved_at: resolvedAt === null ? null : iso(resolvedAt),
    acknowledged:
      acknowledgedAt === null ? null : { at: iso(acknowledgedAt), by: acknowledgedBy ?? '' },
    muted_until: mutedUntil === null ? null : iso(mutedUntil),
    link: publicUrl === undefined ? `/${path}` : linkTo(publicUrl, path),
  };
}

export function toMuteBody(
  { from, until, createdAt, createdBy, ...mute }: Mute,
  now: number,
): z.output<typeof muteSchema> {
  return {
    id: mute.id,
    rule: mute.rule,
    subject: mute.subject,
    from: iso(from),
    until: iso(until),
    active: from <= now,
    reason: mute.reason,
    created_at: iso(createdAt),
    created_by: createdBy,
  };
}
