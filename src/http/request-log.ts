import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { canonicalId, SUBMISSION_ID_PATTERN } from '../domain/submission.ts';
import type { Log } from '../logging/event-catalog.ts';

export const REQUEST_ID_HEADER = 'x-request-id';
export const REQUEST_ID_FIELD = 'request_id';

/** What a caller may name a request: it stands in the log, in headers and in answers as it is. */
const HARMLESS = /^[\w.:-]{1,64}$/;

/** The caller's own id of the request if it may stand anywhere, else a new one. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers[REQUEST_ID_HEADER];
  return typeof given === 'string' && HARMLESS.test(given) ? given : randomUUID();
}

/** The same log, which takes only what is documented; that of a request names it in every line. */
export function logOf({ log }: { log: FastifyBaseLogger }): Log {
  return log as unknown as Log;
}

/** Every answer names its request, and is a line at the level debug. Comes before every hook that may answer. */
export function addRequestLog(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header(REQUEST_ID_HEADER, request.id);
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const log = logOf(request);
    if (log.isLevelEnabled('debug')) logAnswer(log, request, reply);
    done();
  });
}

function logAnswer(log: Log, request: FastifyRequest, reply: FastifyReply): void {
  const submissionId = submissionIdOf(request);
  log.debug(
    {
      address: request.clientAddress,
      method: request.method,
      // Not the URL itself: it may hold names and addresses of users.
      route: request.routeOptions.url,
      http_status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime),
      ...(submissionId !== undefined && { submission_id: submissionId }),
    },
    'http.responded',
  );
}

function submissionIdOf({ routeOptions, params, query }: FastifyRequest): string | undefined {
  const isOfOne = routeOptions.url?.startsWith('/v1/submissions/:id');
  const { id } = (isOfOne ? params : {}) as { id?: unknown };
  const { submission_id: asked } = (query ?? {}) as { submission_id?: unknown };
  const named = id ?? asked;
  return typeof named === 'string' && SUBMISSION_ID_PATTERN.test(named) ? canonicalId(named) : undefined;
}
