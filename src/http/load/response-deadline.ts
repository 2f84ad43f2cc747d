import type { FastifyInstance, FastifyReply, onRequestHookHandler } from 'fastify';
import { sendProblem } from '../problems.ts';
import { logOf } from '../request-log.ts';
import { OpenItems } from './open-items.ts';

/** Checks per deadline. */
const CHECKS = 6;
const MAX_CHECK_MS = 60_000;

/**
 * Returns a hook that responds 503 to a request without a response after `deadlineMs`, so that a faulty handler cannot hold a connection forever.
 * Routes with `staysOpen` are exempt. A response that has begun is limited by `dropStalledReaders`. One timer checks all requests:
 * Fastify's handlerTimeout would create a timer and an AbortController for each, and does not cover requests without a route.
 */
export function enforceResponseDeadline(app: FastifyInstance, deadlineMs: number): onRequestHookHandler {
  /** Requests whose response has not ended, and their times of arrival. */
  const pending = new OpenItems<{ reply: FastifyReply; since: number }>();
  const check = () => {
    const overdue = performance.now() - deadlineMs;
    for (const { reply, since } of pending) {
      if (since > overdue || reply.sent || reply.raw.headersSent || reply.raw.destroyed) continue;
      const { method, routeOptions } = reply.request;
      logOf(reply.request).error({ method, route: routeOptions.url }, 'http.no_response');
      sendProblem(reply.header('connection', 'close'), { status: 503, detail: 'the request took too long' });
    }
  };
  const timer = setInterval(check, Math.min(MAX_CHECK_MS, deadlineMs / CHECKS)).unref();
  app.addHook('onClose', async () => clearInterval(timer));
  return (request, reply, done) => {
    if (!request.routeOptions.config?.staysOpen) {
      // Emitted when the client disconnects first, too.
      reply.raw.on('close', pending.add({ reply, since: performance.now() }));
    }
    done();
  };
}
