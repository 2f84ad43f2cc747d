import type { FastifyInstance, preHandlerHookHandler } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route whose response takes milliseconds to build. */
    isExpensive?: boolean;
  }
}

/**
 * Serves requests of expensive routes one at a time, with iterations of the event loop between
 * them. Without it, a flood of lists exceeds the memory and delays that SECURITY.md promises.
 * Applies to routes registered later.
 */
export function serializeExpensiveRoutes(app: FastifyInstance): void {
  const waiting: (() => void)[] = [];
  let isBusy = false;
  const next = () => {
    const serve = waiting.shift();
    isBusy = serve !== undefined;
    if (!serve) return;
    // Reading a request takes one iteration, and responding to it another.
    setImmediate(() => setImmediate(next));
    serve();
  };
  const wait: preHandlerHookHandler = (_request, reply, done) => {
    waiting.push(() => {
      if (!reply.raw.destroyed) done();
    });
    if (!isBusy) next();
  };
  app.addHook('onRoute', (route) => {
    if (route.config?.isExpensive) route.preHandler = [route.preHandler ?? [], wait].flat();
  });
}
