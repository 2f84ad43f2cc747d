import type { FastifyInstance } from 'fastify';
import type { Counters } from './counters.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answers are held back on purpose, so that how long they took says nothing. */
    staysOpen?: boolean;
  }
}

/** Counts every answer by the pattern of its route: what a client writes into a path is in no label. */
export function countRequests(app: FastifyInstance, counters: Counters): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { url: route, config } = request.routeOptions;
    counters.responded({
      // Without a route it may be any of dozens.
      method: route === undefined ? 'any' : request.method,
      route: route ?? 'none',
      status: reply.statusCode,
      durationMs: config?.staysOpen ? null : reply.elapsedTime,
    });
    done();
  });
}
