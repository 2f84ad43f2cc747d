import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../operations/logging/event-catalog.ts';

export const REQUEST_ID_HEADER = 'x-request-id';

/** Request ids that are safe in logs and headers as they are. */
const SAFE_ID = /^[\w.:-]{1,64}$/;

/** Returns the client's own x-request-id if it is safe, otherwise a new UUID. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const id = headers[REQUEST_ID_HEADER];
  return typeof id === 'string' && SAFE_ID.test(id) ? id : randomUUID();
}

const TRACEPARENT = /^[\da-f]{2}(?:-[\da-f]{1,32}){3}$/;

/**
 * Returns the log of a request, which adds `request_id` and a valid `traceparent` to every line.
 * The child log is created here and not once per request, because few requests write a line and
 * creating it costs more than most requests (row status-reads).
 */
export function logOf({ log, id, headers }: FastifyRequest): Log {
  const traceparent = String(headers.traceparent);
  return log.child({
    request_id: id,
    ...(TRACEPARENT.test(traceparent) && { traceparent }),
  }) as unknown as Log;
}

/** Whether debug lines are written. Checked before a line is built. */
export function isDebugLogged({ log }: { log: FastifyBaseLogger }): boolean {
  return (log as unknown as Log).isLevelEnabled('debug');
}

/** Logs each response at debug. `submissionIdOf`: the submission that a request concerns. */
export function addRequestLog(
  app: FastifyInstance,
  submissionIdOf: (request: FastifyRequest) => string | undefined,
): void {
  app.addHook('onResponse', (request, reply, done) => {
    if (isDebugLogged(request)) {
      const submissionId = submissionIdOf(request);
      const fields = {
        address: request.clientAddress,
        method: request.method,
        // The pattern, because the URL can contain names and addresses of users.
        route: request.routeOptions.url,
        http_status: reply.statusCode,
        duration_ms: Math.round(reply.elapsedTime),
        ...(submissionId !== undefined && { submission_id: submissionId }),
      };
      logOf(request).debug(fields, 'http.responded');
    }
    done();
  });
}

/** Aborts when the client disconnects, or has received the response. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (reply.raw.destroyed || reply.request.raw.socket.destroyed) gone.abort();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}
