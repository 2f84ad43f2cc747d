import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { Queue } from 'bullmq';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, requireRole } from '../access/access.ts';
import type { Health } from '../ports.ts';
import { sendProblem } from '../problems.ts';

export type Queues = {
  /** Internal: to be looked at only. A job begun again by hand would be asked outside the budget. */
  polls: Queue;
  others: readonly Queue[];
};

const PREFIX = '/queues';

/** What bull-board's page needs: its own scripts, and styles that it writes as it goes. Nothing from elsewhere. */
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
 * bull-board at /queues, for admins. A browser can't be told to send a bearer with a page, so here, and only here, the token
 * is taken as the password of HTTP Basic too, with any user name.
 */
export async function registerQueues(
  app: FastifyInstance,
  deps: { queues: Queues; authenticator: Authenticator; health: () => Health },
): Promise<void> {
  const { queues, authenticator, health } = deps;
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, prefersBearer: true, acceptsBasic: true };
  });
  app.addHook('onRequest', requireRole(authenticator, ['admin'], 'Basic realm="dawatch", charset="UTF-8"'));
  app.addHook('onRequest', async (request, reply) => {
    reply.header('content-security-policy', BOARD_CSP);
    // Browsers send the password of Basic with whatever any page makes them send.
    const site = request.headers['sec-fetch-site'];
    if (request.method !== 'GET' && site !== undefined && site !== 'same-origin')
      return sendProblem(reply, { status: 403, detail: 'the page of another site made the browser send this' });
    // Questions to a Redis that was never there would wait for it.
    if (health().redis?.state !== 'up' && request.url.startsWith(`${PREFIX}/api/`))
      return sendProblem(reply, { status: 503, detail: 'Redis is away: see redis.disconnected in the log' });
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
