import type { FastifyInstance } from 'fastify';
import { logOf } from './request-log.ts';

/**
 * Serves requests that arrive in one iteration of the event loop together at its end, so that a client or proxy with many
 * connections is woken once for all responses. This and `coalesceResponses` save 40 % of the CPU of a status read (row
 * status-reads, docs/decisions/0012). Must precede every hook that does more than set headers.
 */
export function coalesceRequests(app: FastifyInstance): void {
  const serve = coalescer(setImmediate);
  app.addHook('onRequest', (_request, _reply, done) => serve(done));
}

/**
 * Holds responses until the next tick, by which all coalesced requests that wait for nothing have theirs, and sends them
 * together. Must follow every other onSend hook.
 */
export function coalesceResponses(app: FastifyInstance): void {
  const send = coalescer(process.nextTick);
  app.addHook('onSend', (request, reply, _payload, done) =>
    send(() => {
      // A response that cannot be sent must not prevent the others.
      try {
        done();
      } catch (error) {
        if (!reply.raw.headersSent) reply.send(error);
        else logOf(request).error({ err: error }, 'http.failed');
      }
    }),
  );
}

/** Collects callbacks and runs all of them when `later` calls back. */
function coalescer(later: (run: () => void) => void): (next: () => void) => void {
  let waiting: (() => void)[] = [];
  const run = () => {
    const all = waiting;
    waiting = [];
    for (const next of all) next();
  };
  return (next) => {
    waiting.push(next);
    if (waiting.length === 1) later(run);
  };
}
