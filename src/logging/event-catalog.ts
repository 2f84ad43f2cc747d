/** What log lines are about: each field, wherever it stands, means this. */
export const LOG_FIELDS = {
  accepted: 'how many were new',
  action: 'what was asked for',
  address: 'address of the client, by `server.trusted_proxies`',
  advice: 'what to do about it',
  already_tracked: 'how many were known before',
  at_most_ms: 'milliseconds it takes at most',
  attempt: 'the number of the attempt, from 1',
  block_hash: 'as the upstream gave it',
  block_number: 'as the upstream gave it',
  caller: 'whose credential it was',
  count: 'how many it is about',
  database: 'path of the ledger',
  delivery_id: 'of the first delivery: `dawatch deliveries show`',
  deliveries: 'how many settled deliveries',
  destination: '`webhook:<id>`, `callback:…` or `channel:<name>`',
  detail: 'what is known besides; no names or addresses of users',
  duration_ms: 'milliseconds it took',
  err: 'the error: type, message, code, stack',
  error: "the upstream's or the receiver's own words, cut",
  event_id: 'id of the event that is told',
  events: 'how many events',
  files: 'paths of files',
  http_status: 'status of the answer',
  job_id: 'id of the job in the queue',
  kind: 'what the answer says',
  method: 'HTTP method',
  next_at: 'when it is tried again',
  of: 'the name of the line that was held back',
  outage_ms: 'milliseconds in which the upstream could not be polled so far: outages, and pauses after Retry-After',
  outcome: 'found, not_found, refused, busy, failed',
  policy: "Redis' maxmemory-policy",
  polls: 'requests spent on the submission',
  previous_status: 'the status before',
  reason: 'why',
  request_id: "the request's id: `x-request-id` of the answer, `instance` of its problem document",
  retry_after_ms: 'milliseconds until it is tried again',
  route: 'the path as it is documented, without what stood in it',
  row: 'what a row of the ledger is about: submission, event, delivery, webhook',
  row_id: 'its id',
  rule: 'which alert',
  said: 'what Redis, the network or the HTTP library said, cut',
  seq: 'number of the last event that was sent',
  since: 'when it began',
  status: 'status of the submission',
  subject: 'what the alert is about',
  submission_id: 'id of the submission',
  submissions: 'how many submissions',
  summary: 'the alert in a sentence',
  suppressed: 'how many lines were held back',
  time_to_finality_ms: "milliseconds from the upstream's created_at, or from tracking, to finality",
  tracked_ms: 'milliseconds since it was tracked',
  type: 'type of the event that is told',
  unreadable: 'the fields of it that can not be read; of an event that is not sent: what is wrong with it',
  upstream: 'name of the upstream in the settings',
  upstream_said: "the upstream's own words, cut",
  upstream_state: "the upstream's state, as it came",
  upstreams: 'names of the upstreams in the settings',
  url: 'where the server listens',
  version: 'of what is told about: dawatch, a worker, Redis',
  needed: 'the least version',
  waiting_ids: 'ids that wait for the ledger',
  waiting_bytes: 'bytes that the reader did not take',
  worker: 'name of the worker',
  workers: 'how many workers are seen',
} as const;

type LogField = keyof typeof LOG_FIELDS;
type LogLevel = 'debug' | 'info' | 'warn' | 'error';

type LogEvent = {
  levels: readonly LogLevel[];
  /** Completes "written when …". */
  when: string;
  fields: readonly LogField[];
  /** What whoever reads it does. */
  advice: string;
};

const SUBMISSION = [
  'submission_id',
  'upstream',
  'status',
  'previous_status',
  'upstream_state',
  'error',
  'block_number',
  'block_hash',
  'tracked_ms',
  'time_to_finality_ms',
  'polls',
] as const satisfies LogField[];
const DELIVERY = [
  'destination',
  'delivery_id',
  'event_id',
  'submission_id',
  'type',
  'events',
  'attempt',
  'duration_ms',
  'http_status',
] as const satisfies LogField[];
const ALERT = ['rule', 'subject', 'summary', 'count', 'since'] as const satisfies LogField[];

const NOTHING = '–';
const LOOK = '`dawatch status <id>` shows its history';

/** Every line there is, by its stable name. */
export const LOG_EVENTS = {
  'server.started': {
    levels: ['info'],
    when: 'the server listens',
    fields: ['url', 'database', 'upstreams', 'version'],
    advice: NOTHING,
  },
  'server.stopped': { levels: ['info'], when: 'everything is closed', fields: [], advice: NOTHING },
  'http.listening': { levels: ['info'], when: 'an address is open', fields: [], advice: NOTHING },
  'http.answered': {
    levels: ['debug'],
    when: 'a request was answered',
    fields: ['request_id', 'address', 'method', 'route', 'http_status', 'duration_ms', 'submission_id'],
    advice: NOTHING,
  },
  'auth.failed': {
    levels: ['debug', 'warn'],
    when: 'an authentication failed; `reason` is `malformed`, `unknown` (or revoked), `locked` (not looked up: too many wrong ones came from the address), `refused` (by the upstream, or not forwarded to it), or at debug `absent`',
    fields: ['request_id', 'reason', 'address', 'method', 'route'],
    advice:
      'find the client by `address`; if that is your proxy, set `server.trusted_proxies`. `dawatch_authentication_failures_total` counts all of them',
  },
  'http.shed': {
    levels: ['warn'],
    when: 'a request was refused with 503, because too much was under way: `tracking` (ids that wait for the ledger) or `held_open`',
    fields: ['request_id', 'reason', 'waiting_ids'],
    advice:
      'clients come again by themselves; for long: fewer of them, a faster disk, or `limits.tracking_wait_s` and `limits.held_open`',
  },
  'http.failed': {
    levels: ['error'],
    when: 'a request ended with 5xx by a fault on this side, or one answered it twice',
    fields: ['request_id', 'err'],
    advice: '`err` says which: the disk, the ledger, or a fault to be reported',
  },
  'http.reader_dropped': {
    levels: ['warn'],
    when: 'a connection was closed: its client left an answer unread for longest while too many bytes waited to be read',
    fields: ['request_id', 'waiting_bytes'],
    advice: 'the client resumes by itself; for long: a client that asks for much and reads it slowly',
  },
  'http.unanswered': {
    levels: ['error'],
    when: 'a request had no answer long after it should have had one, and was refused with 503',
    fields: ['request_id', 'method', 'route'],
    advice: 'a fault to be reported, with `method` and `route`',
  },
  'http.noted': {
    levels: ['debug', 'info', 'warn', 'error'],
    when: 'the HTTP library says something by itself',
    fields: ['request_id', 'said', 'err'],
    advice: 'report it if it comes again',
  },
  'users.answered': {
    levels: ['info', 'warn'],
    when: 'a lookup of users was answered; warn: the upstream failed',
    fields: ['request_id', 'address', 'caller', 'action', 'outcome', 'detail', 'duration_ms', 'upstream_said'],
    advice: 'at warn: look at DAWATCH_UPSTREAM_BEARER and `upstreams.default.users`',
  },
  'submissions.tracked': {
    levels: ['debug'],
    when: 'a request handed over submissions; with the id if it was one',
    fields: ['request_id', 'accepted', 'already_tracked', 'submission_id'],
    advice: NOTHING,
  },
  'submission.cancelled': {
    levels: ['info'],
    when: 'its owner stopped it',
    fields: ['request_id', 'submission_id', 'status'],
    advice: NOTHING,
  },
  'submission.finalized': { levels: ['info'], when: 'it is final', fields: SUBMISSION, advice: NOTHING },
  'submission.corrected': {
    levels: ['info'],
    when: 'its data changed after finality',
    fields: SUBMISSION,
    advice: 'whoever used the first data must look again',
  },
  'submission.failing': {
    levels: ['info'],
    when: 'the upstream says Error, which may pass',
    fields: SUBMISSION,
    advice: NOTHING,
  },
  'submission.recovered': { levels: ['info'], when: 'an Error has passed', fields: SUBMISSION, advice: NOTHING },
  'submission.stuck': {
    levels: ['warn'],
    when: 'it is open for longer than `stuck_after_s`',
    fields: SUBMISSION,
    advice: LOOK,
  },
  'submission.failed': {
    levels: ['warn'],
    when: 'the upstream still says Error at the deadline',
    fields: SUBMISSION,
    advice: 'submit the data again',
  },
  'submission.unknown': {
    levels: ['warn'],
    when: 'the upstream did not find it for `unknown_grace_s`',
    fields: SUBMISSION,
    advice: 'compare the id with the one the upstream gave',
  },
  'submission.rejected': {
    levels: ['warn'],
    when: 'the upstream refuses the id',
    fields: SUBMISSION,
    advice: 'compare the id with the one the upstream gave',
  },
  'submission.expired': {
    levels: ['warn'],
    when: 'the deadline passed',
    fields: SUBMISSION,
    advice: `${LOOK}; track it again with a longer deadline`,
  },
  'poll.answered': {
    levels: ['debug'],
    when: 'the upstream answered about a submission',
    fields: ['submission_id', 'kind', 'duration_ms', 'error'],
    advice: NOTHING,
  },
  'upstream.up': {
    levels: ['info'],
    when: 'an upstream answers again',
    fields: ['upstream', 'outage_ms'],
    advice: NOTHING,
  },
  'upstream.down': {
    levels: ['error'],
    when: 'requests failed in a row, and only probes are sent; deadlines wait',
    fields: ['upstream', 'outage_ms'],
    advice: 'see that the upstream runs and its address is right; it is tried again for ever',
  },
  'upstream.unauthorized': {
    levels: ['error'],
    when: 'an upstream refuses the key',
    fields: ['upstream', 'outage_ms'],
    advice: 'set DAWATCH_UPSTREAM_API_KEY to a key that it takes, and restart',
  },
  'upstream.not_configured': {
    levels: ['warn'],
    when: 'at the start: submissions wait for an upstream that the settings lack',
    fields: ['upstream', 'submissions'],
    advice: 'put it back under `upstreams`, or cancel them',
  },
  'ledger.write_failed': {
    levels: ['error'],
    when: 'observations could not be written, or open submissions not be read after a start; it is tried again',
    fields: ['err'],
    advice: 'make room on the disk, or see who locks the file',
  },
  'ledger.permissions_tightened': {
    levels: ['warn'],
    when: 'at the start: others could read or write files of the ledger, and no longer can',
    fields: ['files'],
    advice: 'replace the secrets of webhooks if somebody may have read them',
  },
  'listener.failed': {
    levels: ['error'],
    when: 'a part of dawatch that follows the monitor, such as its statistics, failed; recording and polling go on',
    fields: ['err'],
    advice: 'a defect: report it with `err`',
  },
  'ledger.row_unreadable': {
    levels: ['error'],
    when: 'a row was read that holds what can not be shown: JSON that is none or is nested too deeply, no time, an unknown word. Once for each',
    fields: ['row', 'row_id', 'unreadable'],
    advice:
      'it is shown with `unreadable`, an event as a gap of the feed and a dead letter; `dawatch doctor --full`, and if the file is damaged, restore a backup',
  },
  'ledger.pruned': {
    levels: ['info'],
    when: 'what is kept no longer was deleted (`retention`, `deliveries.keep_s`)',
    fields: ['submissions', 'events', 'deliveries'],
    advice: NOTHING,
  },
  'ledger.upkeep_failed': {
    levels: ['error'],
    when: 'the ledger could not be pruned, shrunk, or its log emptied; it is tried again',
    fields: ['err'],
    advice: 'make room on the disk, or see who locks the file',
  },
  'delivery.delivered': { levels: ['info'], when: 'a receiver took it', fields: DELIVERY, advice: NOTHING },
  'delivery.failed': {
    levels: ['warn'],
    when: 'an attempt failed, and there will be another',
    fields: [...DELIVERY, 'error', 'next_at'],
    advice: '`dawatch deliveries show <delivery_id>` has every answer',
  },
  'delivery.dead': {
    levels: ['error'],
    when: 'it is given up',
    fields: [...DELIVERY, 'error', 'reason'],
    advice: 'mend the receiver, then `dawatch deliveries replay`',
  },
  'notify.failed': {
    levels: ['error'],
    when: 'what must be sent could not be read or written down; it is tried again',
    fields: ['err'],
    advice: 'make room on the disk, or see who locks the ledger',
  },
  'alert.raised': { levels: ['warn'], when: 'a condition begins', fields: ALERT, advice: 'docs/notifications.md' },
  'alert.reminder': { levels: ['warn'], when: 'it still holds', fields: ALERT, advice: 'docs/notifications.md' },
  'alert.resolved': { levels: ['info'], when: 'it is over', fields: ALERT, advice: NOTHING },
  'feed.failed': {
    levels: ['error'],
    when: 'events could not be read for the live feed; its readers come back',
    fields: ['err'],
    advice: '`err` says what is wrong with the ledger',
  },
  'feed.reader_dropped': {
    levels: ['warn'],
    when: 'a reader of the live feed took nothing for too long',
    fields: ['seq', 'waiting_bytes'],
    advice: 'the reader resumes by itself; if it comes often, it reads too slowly',
  },
  'redis.up': { levels: ['info'], when: 'Redis answers', fields: ['workers'], advice: NOTHING },
  'redis.away': {
    levels: ['error'],
    when: 'Redis does not answer',
    fields: ['reason', 'said', 'advice'],
    advice: '`advice`',
  },
  'redis.eviction_policy': {
    levels: ['warn'],
    when: 'a full Redis would drop jobs',
    fields: ['policy', 'advice'],
    advice: '`advice`',
  },
  'redis.too_old': {
    levels: ['warn'],
    when: 'this Redis lacks what is needed',
    fields: ['version', 'needed', 'advice'],
    advice: '`advice`',
  },
  'redis.epoch_lost': {
    levels: ['warn'],
    when: 'another server took over this prefix',
    fields: ['advice'],
    advice: '`advice`',
  },
  'worker.started': {
    levels: ['info'],
    when: 'a worker began',
    fields: ['worker', 'upstreams', 'version'],
    advice: NOTHING,
  },
  'worker.stopped': { levels: ['info'], when: 'it has ended', fields: [], advice: NOTHING },
  'worker.seen': {
    levels: ['info'],
    when: 'the server sees a new worker',
    fields: ['worker', 'version'],
    advice: NOTHING,
  },
  'worker.gone': {
    levels: ['info'],
    when: 'a worker announces itself no more',
    fields: ['worker', 'version'],
    advice: 'if nobody stopped it, look at its own log',
  },
  'worker.refused': {
    levels: ['error'],
    when: 'a worker announces itself that gets no jobs: its version or its `redis.secret` does not fit. The server polls for it',
    fields: ['worker', 'reason', 'advice'],
    advice: '`advice`',
  },
  'worker.secret_differs': {
    levels: ['error'],
    when: 'the `redis.secret` of the server is none of those of this worker, which takes no jobs until it is',
    fields: ['reason', 'advice'],
    advice: '`advice`',
  },
  'worker.secret_agrees': {
    levels: ['info'],
    when: 'after `worker.secret_differs`: it is one of them, and the worker takes jobs',
    fields: [],
    advice: NOTHING,
  },
  'polls.held': {
    levels: ['info'],
    when: 'at the start: jobs of an earlier life may still be asked',
    fields: ['at_most_ms'],
    advice: NOTHING,
  },
  'polls.returned': {
    levels: ['warn'],
    when: 'a worker did not ask; the server does',
    fields: ['upstream', 'reason', 'submissions'],
    advice: "`reason` in the worker's log says what to change",
  },
  'polls.lost': {
    levels: ['warn'],
    when: 'nothing usable came of a job; its submissions are asked about again',
    fields: ['upstream', 'reason'],
    advice: 'now and then is harmless; often: see the log of the workers',
  },
  'polls.rejected': {
    levels: ['error'],
    when: 'nothing of a result from Redis was believed; its submissions are polled again',
    fields: ['upstream', 'job_id', 'reason', 'advice'],
    advice: '`advice`',
  },
  'polls.refused': {
    levels: ['warn'],
    when: 'a worker does not take a job as valid',
    fields: ['reason'],
    advice: 'give server and workers the same version and the same `redis.secret`; see who else can write to Redis',
  },
  'intake.refused': {
    levels: ['warn'],
    when: 'a job of `dawatch-submissions` is not valid; it is kept as failed',
    fields: ['job_id', 'reason'],
    advice: 'mend who enqueued it: docs/queues.md',
  },
  'intake.postponed': {
    levels: ['error'],
    when: 'a job could not be taken now; it comes again',
    fields: ['job_id', 'retry_after_ms', 'err'],
    advice: '`err` says what is wrong with the ledger',
  },
  'log.repeated': {
    levels: ['warn', 'error'],
    when: 'a minute is over in which lines of one name were held back',
    fields: ['of', 'suppressed', 'upstream', 'destination', 'rule', 'subject'],
    advice: '`log.repeats_per_minute: 0` shows all of them',
  },
} as const satisfies Record<string, LogEvent>;

export type LogEventName = keyof typeof LOG_EVENTS;
type NamesAt<L extends LogLevel> = {
  [Name in LogEventName]: L extends (typeof LOG_EVENTS)[Name]['levels'][number] ? Name : never;
}[LogEventName];
type FieldsOf<Name extends LogEventName> = { readonly [F in (typeof LOG_EVENTS)[Name]['fields'][number]]?: unknown };

/** Takes no name, level or field that LOG_EVENTS does not have. */
export type Log = {
  readonly [L in LogLevel]: {
    <Name extends NamesAt<L>>(fields: FieldsOf<Name>, event: Name): void;
    (event: NamesAt<L>): void;
  };
} & { isLevelEnabled(level: LogLevel): boolean };

export function isLogEvent(name: unknown): name is LogEventName {
  return typeof name === 'string' && Object.hasOwn(LOG_EVENTS, name);
}
