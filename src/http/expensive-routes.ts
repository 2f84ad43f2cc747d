import type { FastifyInstance, preHandlerHookHandler } from 'fastify';
import { clientOf } from '../access/caller.ts';
import { FairQueue } from '../lib/fair-queue.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route whose response takes milliseconds to build. */
    isExpensive?: boolean;
  }
}

/**
 * Serves requests of expensive routes one at a time, with iterations of the event loop between them, so that polls and other
 * requests are delayed by at most one of them. Credentials are served in turn. Requests of disconnected clients are dropped.
 * Applies to routes registered later, after every other hook of their requests.
 */
export function serializeExpensiveRoutes(app: FastifyInstance): void {
  const waiting = new FairQueue<() => void>();
  let isBusy = false;
  const next = () => {
    const serve = waiting.shift();
    isBusy = serve !== undefined;
    if (!serve) return;
    // Reading a request takes one iteration, and responding to it another.
    setImmediate(() => setImmediate(next));
    serve();
  };
  const wait: preHandlerHookHandler = (request, reply, done) => {
    waiting.add(clientOf(request.caller), () => {
      if (!reply.raw.destroyed) done();
    });
    if (!isBusy) next();
  };
  app.addHook('onRoute', (route) => {
    if (route.config?.isExpensive) route.preHandler = [route.preHandler ?? [], wait].flat();
  });
}
