import type { FastifyInstance } from 'fastify';
import { logOf } from '../request-log.ts';

/**
 * Requests that arrive in one turn of the event loop are served together at the end of it, and their answers leave one right
 * after the other. A client or a proxy with many connections is woken once for all of them instead of once for each: being
 * woken in between costs both sides more than most answers do. Comes before every hook that does more than set headers.
 */
export function coalesceRequests(app: FastifyInstance): void {
  const serve = coalescer(setImmediate);
  app.addHook('onRequest', (_request, _reply, done) => serve(done));
}

/**
 * The second half of it, after every other hook of answers. Of requests that wait for nothing, all answers are made by the
 * next tick. One that can't be sent after all must not cost its neighbours theirs.
 */
export function coalesceResponses(app: FastifyInstance): void {
  const send = coalescer(process.nextTick);
  app.addHook('onSend', (request, reply, _payload, done) =>
    send(() => {
      try {
        done();
      } catch (error) {
        if (!reply.raw.headersSent) reply.send(error);
        else logOf(request).error({ err: error }, 'http.failed');
      }
    }),
  );
}

/** Keeps what is to be done until `later`, and then does all of it. */
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
