import type { FastifyInstance, FastifyReply } from 'fastify';
import { sendProblem } from '../problems.ts';
import { logOf } from '../request-log.ts';

/** How many times within the deadline requests are looked through. */
const CHECKS = 6;
const MAX_CHECK_MS = 60_000;

/**
 * Answers every request that has no response after `deadlineMs`, which no handler needs by itself: without that, a handler
 * that never responds would hold its connection forever. Routes that hold requests open on purpose end them themselves, and
 * a response that has begun is bounded by how its client reads it.
 */
export function enforceResponseDeadline(app: FastifyInstance, deadlineMs: number): void {
  /** In the order in which they came. */
  const unanswered = new Map<FastifyReply, number>();
  const check = () => {
    const overdue = performance.now() - deadlineMs;
    for (const [reply, since] of unanswered) {
      if (since > overdue) return;
      unanswered.delete(reply);
      if (reply.sent || reply.raw.headersSent || reply.raw.destroyed) continue;
      const { method, routeOptions, log } = reply.request;
      logOf({ log }).error({ method, route: routeOptions.url }, 'http.no_response');
      sendProblem(reply.header('connection', 'close'), { status: 503, detail: 'the request took too long to answer' });
    }
  };
  const timer = setInterval(check, Math.min(MAX_CHECK_MS, deadlineMs / CHECKS)).unref();
  app.addHook('onClose', async () => clearInterval(timer));
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.routeOptions.config?.staysOpen) {
      unanswered.set(reply, performance.now());
      // Also where the client hangs up first.
      reply.raw.once('close', () => unanswered.delete(reply));
    }
    done();
  });
}
