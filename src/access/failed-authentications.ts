import type { FastifyInstance } from 'fastify';
import { logOf } from '../http/request-log.ts';
import type { Identity } from './access.ts';

/**
 * absent: no credential where one is required. malformed, unknown: not a valid credential. locked:
 * not looked up, because too many wrong ones came from the address. refused: a bearer that the
 * upstream refused or that was not forwarded. cross_origin: the cookie of a session, sent by a page
 * of another origin. oidc: a sign-in at the provider that was refused.
 */
export const AUTHENTICATION_FAILURES = [
  'absent',
  'malformed',
  'unknown',
  'locked',
  'refused',
  'cross_origin',
  'oidc',
] as const;
export type AuthenticationFailure = (typeof AUTHENTICATION_FAILURES)[number];

/** Reports and logs every failed authentication, once per request, before the response is sent. */
export function reportFailedAuthentications(
  app: FastifyInstance,
  onFailed: (reason: AuthenticationFailure, address: string) => void,
): void {
  // Without a child log for each request, because most of these lines are deduplicated.
  const log = logOf(app);
  app.addHook('onSend', (request, { statusCode }, _payload, done) => {
    const reason = request.identity && failureOf(request.identity, statusCode);
    if (reason === undefined) {
      done();
      return;
    }
    const { id, method, clientAddress, routeOptions } = request;
    onFailed(reason, clientAddress);
    const fields = {
      request_id: id,
      reason,
      address: clientAddress,
      method,
      route: routeOptions.url,
    };
    // Browsers and scanners cause these constantly, and no credential was tried.
    if (reason === 'absent') log.debug(fields, 'auth.failed');
    else log.warn(fields, 'auth.failed');
    done();
  });
}

function failureOf(identity: Identity, statusCode: number): AuthenticationFailure | undefined {
  switch (identity.kind) {
    case 'unknown':
    case 'locked':
      // Counted on open routes, too: a wrong credential was tried.
      return identity.kind;
    case 'absent':
    case 'malformed':
    case 'cross_origin':
      return statusCode === 401 ? identity.kind : undefined;
    case 'forwarded':
      return statusCode === 401 || statusCode === 403 ? 'refused' : undefined;
    case 'known':
      return undefined;
    default:
      return identity satisfies never;
  }
}
