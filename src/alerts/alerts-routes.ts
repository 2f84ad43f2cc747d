import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../access/access.ts';
import type { AuditTrail } from '../access/audit-store.ts';
import { operations, problemResponses, sendProblem } from '../http/problems.ts';
import { nextCursor, pageOf, pageParameters } from '../http/query.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { Clock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import type { Mute } from '../notifications/alert.ts';
import {
  alertIdSchema,
  alertListSchema,
  alertSchema,
  alertStateSchema,
  toAlertBody,
} from './alert-body.ts';
import type { Alerts, MutedAlert } from './alerts-store.ts';

const READ = { scopes: ['submissions:read'] } as const;

const params = z.strictObject({ id: alertIdSchema });

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
  getAlert: {
    summary: 'Get an alert',
    params,
    response: { 200: alertSchema, ...problemResponses(404) },
  },
  acknowledgeAlert: {
    summary: 'Acknowledge an alert',
    description:
      'No reminders are sent for it any more. The acknowledgement ends with the alert, whose end is sent. Does nothing if the alert is acknowledged already. Audited.',
    params,
    response: { 200: alertSchema, ...problemResponses(404, 409, 507) },
  },
  withdrawAcknowledgement: {
    summary: 'Withdraw the acknowledgement of an alert',
    description:
      'Reminders are sent again. Does nothing if the alert is not acknowledged. Audited.',
    params,
    response: { 200: alertSchema, ...problemResponses(404, 409, 507) },
  },
});

type AlertDeps = {
  ledger: { alerts: Alerts; audit: AuditTrail };
  clock: Clock;
  publicUrl: () => string | undefined;
};

export function registerAlerts(app: TypedServer, { ledger, clock, publicUrl }: AlertDeps): void {
  const shown = (alert: MutedAlert) => toAlertBody(alert, publicUrl());

  app.get('/v1/alerts', { config: READ, schema: OPERATIONS.listAlerts }, async ({ query }) => {
    const page = ledger.alerts.list({ state: query.state, ...pageOf(query), now: clock.now() });
    return { alerts: page.alerts.map(shown), next_cursor: nextCursor(page.nextBefore) };
  });

  app.get(
    '/v1/alerts/:id',
    { config: READ, schema: OPERATIONS.getAlert },
    async ({ params: { id } }, reply) => {
      const alert = ledger.alerts.get(Number(id), clock.now());
      return alert ? reply.send(shown(alert)) : unknown(reply, id);
    },
  );
}

export function registerAlertChanges(
  app: TypedServer,
  { ledger, clock, publicUrl }: AlertDeps,
): void {
  const { alerts, audit } = ledger;
  type Changed = ReturnType<typeof alerts.withdraw>;
  const send = (reply: FastifyReply, id: string, changed: Changed) => {
    if (!changed) return unknown(reply, id);
    const { alert } = changed;
    if (alert.resolvedAt !== null)
      return sendProblem(reply, { status: 409, detail: `the alert ${id} is resolved` });
    return reply.send(toAlertBody(alert, publicUrl()));
  };
  const entryOf = (action: 'alerts.acknowledge' | 'alerts.withdraw') => (changed: Changed) =>
    changed?.isChanged
      ? { action, subject: String(changed.alert.id), detail: aboutOf(changed.alert) }
      : undefined;

  app.post(
    '/v1/alerts/:id/acknowledge',
    { schema: OPERATIONS.acknowledgeAlert },
    async (request, reply) => {
      const { id } = request.params;
      const [now, actor] = [clock.now(), actorOf(request)];
      const acknowledge = () => alerts.acknowledge(Number(id), actor.name, now);
      return send(reply, id, audit.change(actor, now, acknowledge, entryOf('alerts.acknowledge')));
    },
  );

  app.delete(
    '/v1/alerts/:id/acknowledge',
    { schema: OPERATIONS.withdrawAcknowledgement },
    async (request, reply) => {
      const { id } = request.params;
      const [now, actor] = [clock.now(), actorOf(request)];
      const withdraw = () => alerts.withdraw(Number(id), now);
      return send(reply, id, audit.change(actor, now, withdraw, entryOf('alerts.withdraw')));
    },
  );
}

/** Describes an alert, or the alerts that a mute covers, for the audit. */
export function aboutOf({ rule, subject }: Pick<Mute, 'rule' | 'subject'>): string {
  return rule === null ? 'all alerts' : escapeText([rule, subject].filter(Boolean).join(' '));
}

function unknown(reply: FastifyReply, id: string): FastifyReply {
  return sendProblem(reply, {
    status: 404,
    detail: `there is no alert ${id}; resolved alerts are removed after a while`,
  });
}
