import { debug, error, eventAt, info, type LogEvent, warn } from './fields.ts';

/** Start and stop of the server, its settings, HTTP requests and the live feed. */
export const HTTP_EVENTS = {
  'server.started': info('the server accepts requests', [
    'url',
    'database',
    'upstreams',
    'version',
  ]),
  'server.stopped': info('the server has stopped'),
  'settings.reloaded': info(
    'SIGHUP or `POST /v1/reload` has reloaded the settings. `changes` names those that changed',
    ['caller', 'address', 'changes'],
  ),
  'settings.reload_refused': error(
    'a reload was refused and nothing of it was applied: the settings are invalid, or a change needs a restart. The process continues with the previous settings',
    ['caller', 'address', 'reason', 'err'],
    'fix what `reason` names and reload again, or restart',
  ),
  'http.listening': info('a listening socket is open'),
  'http.responded': debug('a response was sent', [
    'request_id',
    'address',
    'method',
    'route',
    'http_status',
    'duration_ms',
    'submission_id',
  ]),
  'auth.failed': eventAt('debug', 'warn')(
    'an authentication failed. `reason` is `malformed`, `unknown` (or revoked), `locked` (not verified, because of too many failures from the address), `refused` (by the upstream, or not forwarded to it), `cross_origin` (the cookie of a session, from a page of another origin) or, at debug, `absent`',
    ['request_id', 'reason', 'address', 'method', 'route'],
    'find the client by `address`. If the address is your proxy, set `server.trusted_proxies`. `dawatch_authentication_failures_total` counts all failures',
  ),
  'auth.sign_in_failed': warn(
    'a person could not sign in at the provider of `oidc`. `reason` is `unavailable` (the provider cannot be reached, or is not what the settings describe), `denied` (by the provider), `invalid` (its response failed a check), `state` (unknown, expired or used before), `no_role`, `revoked` (the credential of the person) or `ledger`',
    ['request_id', 'reason', 'address', 'detail', 'err'],
    '`detail` names the cause. Check `oidc` with `dawatch doctor`; for `no_role`, compare `oidc.role_claim` and `oidc.roles` with the claims of the ID token',
  ),
  'tracing.disabled': warn(
    'a variable of OpenTelemetry is invalid or not supported at the start. The server runs without traces',
    ['variable', 'reason'],
    'correct the variable and restart, or set `OTEL_TRACES_EXPORTER=none`',
  ),
  'tracing.dropped': warn(
    'spans were dropped: the receiver of traces refused them, or was unavailable for too long. Tracking, polls and deliveries continue',
    ['spans', 'reason'],
    '`reason` names the cause: check `OTEL_EXPORTER_OTLP_ENDPOINT`, its headers and the receiver',
  ),
  'http.shed': warn(
    'a request was refused with 503 because of overload. `reason` is `tracking` (ids waiting for the ledger) or `held_open`',
    ['request_id', 'reason', 'waiting_ids'],
    'clients retry by themselves. If it persists: reduce the load, or use a faster disk',
  ),
  'http.failed': error(
    'a request failed with 5xx because of an internal error, or its handler sent two responses',
    ['request_id', 'err'],
    '`err` names the cause: the disk, the ledger, or a defect to report',
  ),
  'http.slow_client_closed': warn(
    'a connection was closed because its client had left a response unread for the longest time while too many bytes were buffered',
    ['request_id', 'waiting_bytes'],
    'the client can retry. If it persists: find the client that requests large responses and reads them slowly',
  ),
  'http.no_response': error(
    'a request had no response long after its time limit and was refused with 503',
    ['request_id', 'method', 'route'],
    'report the defect with `method` and `route`',
  ),
  'http.library_message': eventAt(
    'debug',
    'info',
    'warn',
    'error',
  )(
    'the HTTP library logs a message of its own',
    ['request_id', 'message', 'err'],
    'report it if it recurs',
  ),
  'metrics.incomplete': error(
    'a part of the metrics could not be collected and is missing from the response',
    ['request_id', 'err'],
    '`err` names the cause',
  ),
  'users.lookup': eventAt('info', 'warn')(
    'a user lookup has ended; at warn, because the upstream failed',
    [
      'request_id',
      'address',
      'caller',
      'action',
      'result',
      'detail',
      'duration_ms',
      'upstream_message',
    ],
    'at warn: check DAWATCH_UPSTREAM_BEARER and `upstreams.default.users`',
  ),
  'feed.failed': error(
    'events could not be read for the live feed. Its clients reconnect',
    ['err'],
    '`err` names the problem of the ledger',
  ),
  'feed.slow_client_closed': warn(
    'a client of the live feed was disconnected because it read nothing for too long',
    ['seq', 'waiting_bytes'],
    'the client resumes by itself. If it recurs, the client reads too slowly',
  ),
} as const satisfies Record<string, LogEvent>;
