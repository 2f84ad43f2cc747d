import { z } from 'zod';
import { actorOf } from '../access/access.ts';
import type { AuditTrail } from '../access/audit-store.ts';
import { operations, problemResponses, sendInvalidField, sendProblem } from '../http/problems.ts';
import { nextCursor, pageOf, pageParameters } from '../http/query.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { Clock } from '../lib/clock.ts';
import { iso } from '../lib/timestamps.ts';
import type { Mute } from '../notifications/alert.ts';
import {
  muteIdSchema,
  muteListSchema,
  muteSchema,
  newMuteSchema,
  toMuteBody,
} from './alert-body.ts';
import { aboutOf } from './alerts-routes.ts';
import type { Mutes } from './mutes-store.ts';
import { MAX_MUTES } from './mutes-store.ts';

const MAX_AHEAD_MS = 366 * 86_400_000;

const params = z.strictObject({ id: muteIdSchema });

const OPERATIONS = operations('alerts', {
  createMute: {
    summary: 'Mute alerts, or plan a maintenance window',
    description:
      'While a mute is active, the alerts that it covers are recorded and not sent. Alerts that began meanwhile and still fire when it ends are sent then. The end of an alert is always sent if its beginning was. Audited.',
    body: newMuteSchema,
    response: { 201: muteSchema, ...problemResponses(409, 507) },
  },
  listMutes: {
    summary: 'List the mutes and maintenance windows that have not ended, newest first',
    querystring: z.strictObject(pageParameters),
    response: { 200: muteListSchema },
  },
  deleteMute: {
    summary: 'End a mute, or cancel it before its start',
    description: 'Alerts that began while it was active and still fire are sent. Audited.',
    params,
    response: { 204: z.null().describe('The mute has ended'), ...problemResponses(404, 507) },
  },
});

export function registerMutes(
  app: TypedServer,
  { ledger, clock }: { ledger: { mutes: Mutes; audit: AuditTrail }; clock: Clock },
): void {
  const { mutes, audit } = ledger;
  const entryOf = (action: 'mutes.create' | 'mutes.delete') => (mute: Mute | undefined) =>
    mute && {
      action,
      subject: String(mute.id),
      detail: `${aboutOf(mute)}, ${iso(mute.from)} to ${iso(mute.until)}`,
    };

  app.post('/v1/mutes', { schema: OPERATIONS.createMute }, async (request, reply) => {
    const now = clock.now();
    const { from: start, until: end, ...fields } = request.body;
    const [from, until] = [start === undefined ? now : Date.parse(start), Date.parse(end)];
    if (until <= now) return sendInvalidField(reply, 'until', 'must be in the future');
    if (until <= from) return sendInvalidField(reply, 'until', 'must be after `from`');
    if (until > now + MAX_AHEAD_MS)
      return sendInvalidField(reply, 'until', 'must be within 366 days from now');
    const actor = actorOf(request);
    const add = () => mutes.add({ ...fields, from, until }, actor.name, now);
    const made = audit.change(actor, now, add, entryOf('mutes.create'));
    if (made)
      return reply.code(201).header('location', `/v1/mutes/${made.id}`).send(toMuteBody(made, now));
    const detail = `there are ${MAX_MUTES} mutes that have not ended: delete some of them first`;
    return sendProblem(reply, { status: 409, detail });
  });

  app.get(
    '/v1/mutes',
    { config: { scopes: ['operations:read'] }, schema: OPERATIONS.listMutes },
    async ({ query }) => {
      const now = clock.now();
      const page = mutes.list({ ...pageOf(query), now });
      return {
        mutes: page.mutes.map((mute) => toMuteBody(mute, now)),
        next_cursor: nextCursor(page.nextBefore),
      };
    },
  );

  app.delete('/v1/mutes/:id', { schema: OPERATIONS.deleteMute }, async (request, reply) => {
    const { id } = request.params;
    const now = clock.now();
    const remove = () => mutes.delete(Number(id), now);
    const deleted = audit.change(actorOf(request), now, remove, entryOf('mutes.delete'));
    if (deleted) return reply.code(204).send(null);
    return sendProblem(reply, { status: 404, detail: `there is no mute ${id} that has not ended` });
  });
}
