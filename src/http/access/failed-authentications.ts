import type { FastifyInstance } from 'fastify';
import { logOf } from '../request-log.ts';
import type { Identity } from './access.ts';

/**
 * absent: 401 without a credential. malformed, unknown: it is nobody's. locked: not looked up, too many wrong ones came from
 * its address. refused: the upstream did not accept a forwarded bearer, or it was not forwarded.
 */
export const AUTHENTICATION_FAILURES = ['absent', 'malformed', 'unknown', 'locked', 'refused'] as const;
export type AuthenticationFailure = (typeof AUTHENTICATION_FAILURES)[number];

/** Reports and logs every failed authentication, once per request, before its answer leaves. */
export function reportFailedAuthentications(
  app: FastifyInstance,
  onFailed: (reason: AuthenticationFailure) => void,
): void {
  // The log of the request would be made for each line, also for those that the log suppresses.
  const log = logOf(app);
  app.addHook('onSend', (request, { statusCode }, _payload, done) => {
    const reason = request.identity && failureOf(request.identity, statusCode);
    if (reason === undefined) {
      done();
      return;
    }
    onFailed(reason);
    const { id, method, clientAddress, routeOptions } = request;
    const fields = { request_id: id, reason, address: clientAddress, method, route: routeOptions.url };
    // Browsers and scanners do this all day, and nothing was tried.
    if (reason === 'absent') log.debug(fields, 'auth.failed');
    else log.warn(fields, 'auth.failed');
    done();
  });
}

function failureOf(identity: Identity, statusCode: number): AuthenticationFailure | undefined {
  switch (identity.kind) {
    case 'unknown':
    case 'locked':
      // Also where no credential is needed: a wrong one was tried.
      return identity.kind;
    case 'absent':
    case 'malformed':
      return statusCode === 401 ? identity.kind : undefined;
    case 'forwarded':
      return statusCode === 401 || statusCode === 403 ? 'refused' : undefined;
    case 'known':
      return undefined;
    default:
      return identity satisfies never;
  }
}
