/** Every field of a log line and its meaning. A field means the same in every event. */
export const LOG_FIELDS = {
  accepted: 'number of newly tracked submissions',
  action: 'the requested operation',
  address: 'client address, determined with `server.trusted_proxies`',
  advice: 'how to resolve the problem',
  already_tracked: 'number of submissions that were open already',
  already_final: 'number of submissions that had ended already',
  options: 'names of the changed options',
  retracked: 'number of ended submissions that are tracked again',
  attempt: 'number of the attempt, starting at 1',
  block_hash: 'block hash as returned by the upstream',
  block_number: 'block number as returned by the upstream',
  caller: 'name of the credential that made the request',
  chain: 'name of the chain, as its node says',
  chain_reason: 'why the chain does not confirm the block',
  count: 'number of items the alert covers',
  database: 'path of the ledger',
  deliveries: 'number of deleted deliveries',
  delivery_id: 'id of the first delivery, for `dawatch deliveries show`',
  destination: '`webhook:<id>`, `callback:…` or `channel:<name>`',
  detail: 'further information; never names or addresses of users',
  duration_ms: 'duration in milliseconds',
  err: 'the error: type, message, code, stack',
  error: 'error text of the upstream or the receiver, truncated',
  event_id: 'id of the delivered event',
  events: 'number of events',
  generation: 'number of installations that have continued the ledger, including this one',
  http_status: 'HTTP status of the response',
  job_id: 'id of the job in the queue',
  kind: 'kind of the observation',
  max_delay_ms: 'upper bound of the delay in milliseconds',
  message: 'message of Redis, the network or the HTTP library, truncated',
  method: 'HTTP method',
  muted: 'true: the alert is muted, so the event was sent to no destination',
  node: 'host of the node of the chain',
  next_at: 'time of the next attempt',
  outage_ms: 'milliseconds from the first failed request of the outage to its end',
  polls: 'number of polls of the submission',
  previous_status: 'status before the change',
  reason: 'cause of the event',
  request_id: 'request id: `x-request-id` of the response, `instance` of its problem document',
  result: 'found, not_found, refused, busy, failed',
  retry_after_ms: 'milliseconds until the next attempt',
  route: 'documented path with parameter names instead of values',
  rule: 'name of the alert rule',
  seq: 'sequence number of the last event sent',
  since: 'start time of the condition',
  status: 'status of the submission',
  subject: 'what the alert concerns, such as an upstream or a webhook',
  submission_id: 'id of the submission',
  submissions: 'number of submissions',
  summary: 'the alert in one sentence',
  suppressed: 'number of suppressed lines',
  suppressed_event: 'name of the suppressed event',
  time_to_finality_ms: "milliseconds from the upstream's created_at, or from tracking, to finality",
  traceparent: 'the header of the request, as W3C Trace Context defines it',
  tracked_ms: 'milliseconds since tracking began',
  type: 'type of the delivered event',
  upstream: 'name of the upstream in the settings',
  upstream_message: 'message of the upstream, truncated',
  upstream_state: '`state` as returned by the upstream',
  upstreams: 'names of the upstreams in the settings',
  url: 'address on which the server listens',
  version: 'version of dawatch or of a worker',
  waiting_bytes: 'bytes buffered for the client',
  waiting_ids: 'number of ids waiting for the ledger',
  worker: 'name of the worker',
  workers: 'number of connected workers',
} as const;

export type LogField = keyof typeof LOG_FIELDS;
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export type LogEvent = {
  levels: readonly LogLevel[];
  /** Completes "written when …". */
  when: string;
  fields: readonly LogField[];
  /** The action for an operator; absent if there is none. */
  advice?: string;
};

/** Returns a function that describes an event written at these levels. */
export function eventAt<const Level extends LogLevel>(...levels: Level[]) {
  return <const Field extends LogField = never>(
    when: string,
    fields: readonly Field[] = [],
    advice?: string,
  ) => ({
    levels,
    when,
    fields,
    ...(advice !== undefined && { advice }),
  });
}

export const debug = eventAt('debug');
export const info = eventAt('info');
export const warn = eventAt('warn');
export const error = eventAt('error');
