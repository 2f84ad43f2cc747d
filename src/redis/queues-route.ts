import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { Queue } from 'bullmq';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, actorOf, requireScope } from '../access/access.ts';
import type { AuditTrail } from '../access/audit-store.ts';
import { sendProblem } from '../http/problems.ts';
import type { Clock } from '../lib/clock.ts';
import type { Readiness } from '../operations/health-routes.ts';

export type Queues = {
  /** Read-only on the board: a job retried by hand would be polled outside the request budget. */
  polls: Queue;
  others: readonly Queue[];
};

const PREFIX = '/queues';

/** The minimum for bull-board's page: its own scripts, and inline styles. */
const BOARD_CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Registers bull-board at /queues for admins. Browsers cannot send a bearer with a page, so only
 * this route also accepts the token as the password of HTTP Basic, with any user name.
 */
export async function registerQueues(
  app: FastifyInstance,
  deps: {
    queues: Queues;
    authenticator: Authenticator;
    health: () => Readiness;
    ledger: { audit: AuditTrail; whenDurable(): Promise<void> | undefined };
    clock: Pick<Clock, 'now'>;
  },
): Promise<void> {
  const { queues, authenticator, health, ledger, clock } = deps;
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, prefersBearer: true, acceptsBasic: true };
  });
  app.addHook('onRequest', requireScope(authenticator, 'Basic realm="dawatch", charset="UTF-8"'));
  app.addHook('onRequest', async (request, reply) => {
    reply.header('content-security-policy', BOARD_CSP);
    // Browsers attach the password of Basic to requests of any page.
    const site = request.headers['sec-fetch-site'];
    if (request.method !== 'GET' && site !== undefined && site !== 'same-origin')
      return sendProblem(reply, {
        status: 403,
        detail: 'requests from pages of other sites are refused',
      });
    // A query to a Redis that was never connected would wait for it.
    if (health().redis?.state !== 'up' && request.url.startsWith(`${PREFIX}/api/`))
      return sendProblem(reply, {
        status: 503,
        detail: 'Redis is disconnected: see redis.disconnected in the log',
      });
    if (request.method === 'GET' || request.method === 'HEAD') return undefined;
    const { queueName } = request.params as { queueName?: string };
    const detail = `${request.method} ${request.routeOptions.url}`;
    ledger.audit.append(actorOf(request), clock.now(), {
      action: 'queues.change',
      subject: queueName ?? null,
      detail,
    });
    // The change of Redis must not be older than its entry.
    await ledger.whenDurable();
    return undefined;
  });
  const serverAdapter = new FastifyAdapter();
  serverAdapter.setBasePath(PREFIX);
  createBullBoard({
    queues: [
      ...queues.others.map((queue) => new BullMQAdapter(queue)),
      new BullMQAdapter(queues.polls, { readOnlyMode: true }),
    ],
    serverAdapter,
    options: { uiConfig: { boardTitle: 'dawatch', hideDocsLink: true } },
  });
  await app.register(serverAdapter.registerPlugin(), { prefix: PREFIX });
}
