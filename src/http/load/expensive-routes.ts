import type { FastifyInstance } from 'fastify';
import { FairQueue } from '../../watch/fair-queue.ts';
import { clientOf } from '../ports.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route whose answer takes milliseconds to build. */
    isExpensive?: boolean;
  }
}

/**
 * Builds long answers one by one, with turns of the event loop between them: however many clients ask at once, everything
 * else is delayed by one of them. Credentials take turns, and requests whose client has hung up meanwhile are left out.
 * Comes after every other hook of requests.
 */
export function serializeExpensiveRoutes(app: FastifyInstance): void {
  const waiting = new FairQueue<() => void>();
  let isTaken = false;
  const next = () => {
    const serve = waiting.shift();
    isTaken = serve !== undefined;
    if (!serve) return;
    // Reading a request takes one turn, and answering it another.
    setImmediate(() => setImmediate(next));
    serve();
  };
  app.addHook('preHandler', (request, reply, done) => {
    if (!request.routeOptions.config?.isExpensive) {
      done();
      return;
    }
    waiting.add(clientOf(request.caller), () => {
      if (!reply.raw.destroyed) done();
    });
    if (!isTaken) next();
  });
}
