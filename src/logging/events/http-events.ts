import type { LogEvent } from './fields.ts';

/** Start and stop of the server, HTTP requests and the live feed. */
export const HTTP_EVENTS = {
  'server.started': {
    levels: ['info'],
    when: 'the server accepts requests',
    fields: ['url', 'database', 'upstreams', 'version'],
  },
  'server.stopped': { levels: ['info'], when: 'the server has stopped', fields: [] },
  'http.listening': { levels: ['info'], when: 'a listening socket is open', fields: [] },
  'http.responded': {
    levels: ['debug'],
    when: 'a response was sent',
    fields: ['request_id', 'address', 'method', 'route', 'http_status', 'duration_ms', 'submission_id'],
  },
  'auth.failed': {
    levels: ['debug', 'warn'],
    when: 'an authentication failed. `reason` is `malformed`, `unknown` (or revoked), `locked` (not verified, because of too many failures from the address), `refused` (by the upstream, or not forwarded to it) or, at debug, `absent`',
    fields: ['request_id', 'reason', 'address', 'method', 'route'],
    advice:
      'find the client by `address`. If the address is your proxy, set `server.trusted_proxies`. `dawatch_authentication_failures_total` counts all failures',
  },
  'http.shed': {
    levels: ['warn'],
    when: 'a request was refused with 503 because of overload. `reason` is `tracking` (ids waiting for the ledger) or `held_open`',
    fields: ['request_id', 'reason', 'waiting_ids'],
    advice:
      'clients retry by themselves. If it persists: reduce the load, use a faster disk, or raise `limits.tracking_wait_s` or `limits.held_open`',
  },
  'http.failed': {
    levels: ['error'],
    when: 'a request failed with 5xx because of an internal error, or its handler sent two responses',
    fields: ['request_id', 'err'],
    advice: '`err` names the cause: the disk, the ledger, or a defect to report',
  },
  'http.slow_client_closed': {
    levels: ['warn'],
    when: 'a connection was closed because its client had left a response unread for the longest time while too many bytes were buffered',
    fields: ['request_id', 'waiting_bytes'],
    advice: 'the client can retry. If it persists: find the client that requests large responses and reads them slowly',
  },
  'http.no_response': {
    levels: ['error'],
    when: 'a request had no response long after its time limit and was refused with 503',
    fields: ['request_id', 'method', 'route'],
    advice: 'report the defect with `method` and `route`',
  },
  'http.library_message': {
    levels: ['debug', 'info', 'warn', 'error'],
    when: 'the HTTP library logs a message of its own',
    fields: ['request_id', 'message', 'err'],
    advice: 'report it if it recurs',
  },
  'metrics.incomplete': {
    levels: ['error'],
    when: 'a part of the metrics could not be collected and is missing from the response',
    fields: ['request_id', 'err'],
    advice: '`err` names the cause',
  },
  'users.lookup': {
    levels: ['info', 'warn'],
    when: 'a user lookup has ended; at warn, because the upstream failed',
    fields: ['request_id', 'address', 'caller', 'action', 'outcome', 'detail', 'duration_ms', 'upstream_message'],
    advice: 'at warn: check DAWATCH_UPSTREAM_BEARER and `upstreams.default.users`',
  },
  'feed.failed': {
    levels: ['error'],
    when: 'events could not be read for the live feed. Its clients reconnect',
    fields: ['err'],
    advice: '`err` names the problem of the ledger',
  },
  'feed.slow_client_closed': {
    levels: ['warn'],
    when: 'a client of the live feed was disconnected because it read nothing for too long',
    fields: ['seq', 'waiting_bytes'],
    advice: 'the client resumes by itself. If it recurs, the client reads too slowly',
  },
} as const satisfies Record<string, LogEvent>;
