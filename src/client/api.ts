// Written by `npm run docs:client` from /openapi.json.

/** An alert */
export type Alert = {
  /** Identifies this occurrence. When the same condition begins again, its alert has another id. 0: the alert is not recorded yet, because the ledger cannot be written */
  id: number;
  rule: AlertRule;
  /** The affected upstream or destination, or `ledger`, `redis`, `workers` or `all` */
  subject: string;
  /** One sentence for operators */
  summary: string;
  /** Number of affected submissions or deliveries */
  count: number | null;
  /** Since when the condition has held */
  since: string;
  /** Whether the condition holds */
  firing: boolean;
  /** When the condition ended; null while it is firing */
  resolved_at: string | null;
  /** End of the mute that covers it now; null: it is not muted */
  muted_until: string | null;
  /** The dashboard page about it: a path on this server, or an address if `server.public_url` is set */
  link: string;
};

/** An alert: raised, resolved */
export type AlertEvent = {
  /** The same in every retry, so that receivers can drop duplicates */
  id: string;
  /** ISO 8601, UTC */
  timestamp: string;
  type: AlertEventType;
  data: {
    /** Counts over all events in the order of their commits: of two events of a submission, the larger is the newer one */
    sequence: number;
    alert: {
      rule: AlertRule;
      /** The upstream or destination concerned */
      subject: string;
      /** One sentence for operators */
      summary: string;
      /** Number of affected submissions or deliveries */
      count: number | null;
      /** Since when the condition has held */
      since: string;
      /** Identifies this occurrence of the alert */
      id: number;
      /** Address of the dashboard page about it; absent without `server.public_url` */
      link?: string;
      /**
       * True: recorded while the alert was muted, and sent to no webhook, channel or queue; only in the live feed
       */
      muted?: true;
    };
  };
};

export type AlertEventType = 'alert.raised' | 'alert.resolved';

/** A page of alerts */
export type AlertPage = {
  /** Newest first */
  alerts: Alert[];
  /** Send it as `cursor` to get the next page; null on the last page */
  next_cursor: string | null;
};

export type AlertRule =
  | 'stuck'
  | 'failures'
  | 'contradicted'
  | 'upstream_down'
  | 'credentials_refused'
  | 'upstream_paused'
  | 'webhook_failing'
  | 'channel_failing'
  | 'backlog'
  | 'dead_letters'
  | 'webhook_disabled'
  | 'wal_size'
  | 'disk_low'
  | 'ledger_not_writable'
  | 'redis_down'
  | 'no_workers'
  | 'chain_node';

/**
 * firing: alerts whose condition holds, also muted ones
 */
export type AlertState = 'firing' | 'resolved' | 'all';

/** An entry of the audit */
export type AuditEntry = {
  seq: number;
  /** ISO 8601, UTC */
  at: string;
  /** Name of the credential; for a token of the upstream, "forwarded:" and a short keyed hash of it; for a command, "cli:" and the user of the system; dawatch for the server itself */
  caller: string;
  /** E-mail address or subject of a caller who signed in by OpenID Connect; `caller` is then `person:` and the credential_id. */
  caller_person: string | null;
  /** Id of the credential in `dawatch token list`; null for a configured credential and a forwarded token */
  credential_id: number | null;
  /** Address of the client, see `server.trusted_proxies`; null if there was no request, or it was not recorded */
  address: string | null;
  /** users.get: a lookup of one user. users.list: a list of users. tokens.create: a token was created; subject: its id; detail: its name and role. tokens.revoke: a token was revoked; subject: its id; detail: its name. sessions.create: a person signed in to the dashboard; detail: how. sessions.delete: a person signed out of the dashboard. webhooks.create: a webhook was created, and its secret shown; subject: its id. webhooks.update: a webhook was changed; subject: its id. webhooks.delete: a webhook was deleted; subject: its id. webhooks.rotate: the secret of a webhook was replaced, and the new one shown; subject: its id. webhooks.test: a test event was sent; subject: the webhook. channels.test: a test event was sent; subject: the channel. mutes.create: alerts were muted; subject: the id of the mute. mutes.delete: a mute was ended; subject: its id. deliveries.replay: deliveries were sent again; subject: the delivery or the destination. submissions.update: options of a submission were changed; subject: its id; detail: their names. submissions.cancel: a submission was cancelled; subject: its id. audit.read: entries were listed, for the first time of the caller in an hour. audit.export: the audit was exported. auth.refused: a credential was refused, for the first time of its address in an hour; detail: the reason. audit.prune: entries older than 400 days were deleted; subject: the newest of them */
  action: string;
  /** found, not_found, refused, failed, busy, done. refused: by dawatch or the upstream; failed: the upstream returned no usable response; busy: not sent, too many lookups were in flight; done: the change is stored */
  result: string;
  /** What was changed, see `action` */
  subject: string | null;
  /** The limit, the names of the changed settings or fields, the changed alert or mute, or the reason of a refusal or failure */
  detail: string | null;
  /** Keyed hash of the requested address; equal addresses have equal hashes. The key is in the ledger, so this protects listings and exports, not that file */
  email_hash: string | null;
  email_masked: string | null;
};

/** A page of the audit */
export type AuditPage = {
  /** Newest first */
  entries: AuditEntry[];
  /** Send it as `cursor` to get the next page; null on the last page */
  next_cursor: string | null;
};

export type CallbackTest = {
  /** The address to test, with the rules for a callback_url */
  url: string;
};

/** A node of the chain */
export type ChainNode = {
  /** Host and port */
  host: string;
  state: ChainNodeState;
  /** Highest block that it announced as final */
  block_number: number | null;
  /** When it did */
  block_at: string | null;
  /** Why it is not used; null if it is, or is connecting */
  problem: string | null;
};

/**
 * used: it is connected and trusted; connecting: it has announced no block yet; disconnected: the connection failed. The others are not trusted: another_chain: its block 0 is another one; early: it announces blocks before they are final; behind: it announces them later than the others; another_block: its blocks differ from those of the others
 */
export type ChainNodeState =
  | 'used'
  | 'connecting'
  | 'disconnected'
  | 'another_chain'
  | 'early'
  | 'behind'
  | 'another_block';

/**
 * connected: a node that is used announces finalized blocks; unavailable: none does, so polls follow the learned distribution
 */
export type ChainState = 'connected' | 'unavailable';

/** The nodes of the chain */
export type ChainStatus = {
  state: ChainState;
  /** Name of the chain; null if not known */
  name: string | null;
  /** Hash of block 0, which identifies the chain; null if not known */
  genesis_hash: string | null;
  /** Highest block that a trusted node announced as final; null if there was none */
  block_number: number | null;
  /** When it was announced */
  block_at: string | null;
  /** In the order of the settings */
  nodes: ChainNode[];
};

/**
 * What a node of the chain, or the expected hash, says about `data`. confirmed: the block is final on the chain, and with `verify_data` its data root contains the data; contradicted: the chain has another block or transaction, or the hash of the data is another one; unavailable: the node could not tell; null: it was not verified
 */
export type ChainVerdict = 'confirmed' | 'contradicted' | 'unavailable' | null;

/** Seconds before and after a change */
export type ChangedSeconds = {
  from: number;
  to: number;
};

/** A text before and after a change; null: none */
export type ChangedText = {
  from: string | null;
  to: string | null;
};

/** A time before and after a change */
export type ChangedTime = {
  /** ISO 8601, UTC */
  from: string;
  /** ISO 8601, UTC */
  to: string;
};

/** A channel */
export type Channel = {
  name: string;
  /** slack, discord, teams, telegram, ntfy, pagerduty, apprise, email, or queue */
  type: string;
  /** Address of the channel, with its secret parts masked */
  address: string;
  /** Subscriptions: the channel receives the events that match at least one of them; empty: no events */
  routes: {
    /** Event types; wildcards such as alert.* are allowed */
    types: string[];
    metadata: {
      [key: string]: unknown;
    } | null;
  }[];
  /** When an attempt last succeeded; null: never */
  last_success_at: string | null;
  /** When an attempt last failed, if only for some recipients; null: never */
  last_failure_at: string | null;
  /** Of the newest failure, also of one that is over */
  last_error: string | null;
  /** Time since which every attempt has failed */
  failing_since: string | null;
  deliveries: {
    /** Deliveries that wait for an attempt */
    waiting: number;
    /** Dead letters, which can be replayed */
    dead: number;
  };
};

/** All channels */
export type ChannelList = {
  /** In the order of the settings */
  channels: Channel[];
};

/** A test of one channel */
export type ChannelTestEvent = {
  /** The same in every retry, so that receivers can drop duplicates */
  id: string;
  /** ISO 8601, UTC */
  timestamp: string;
  type: 'channel.test';
  data: {
    /** Counts over all events in the order of their commits: of two events of a submission, the larger is the newer one */
    sequence: number;
    /** Name of the channel */
    channel: string;
  };
};

/** A credential, without its secret */
export type Credential = {
  id: number;
  name: string;
  /** E-mail address or subject of the person who signs in with this credential by OpenID Connect; null for the token of a client */
  person: string | null;
  role: Role;
  state: CredentialState;
  /** ISO 8601, UTC */
  created_at: string;
  /** ISO 8601, UTC */
  expires_at: string | null;
  /** Time of its last use, to the minute; null: not used */
  last_used_at: string | null;
  /** ISO 8601, UTC */
  revoked_at: string | null;
};

/** A page of credentials */
export type CredentialPage = {
  /** Newest first */
  credentials: Credential[];
  /** Send it as `cursor` to get the next page; null on the last page */
  next_cursor: string | null;
};

export type CredentialState = 'valid' | 'expired' | 'revoked';

/** A credential with its new secret */
export type CredentialWithSecret = Credential & {
  /** Returned only here; only its hash is stored */
  secret: string;
};

/**
 * Why a delivery became a dead letter
 */
export type DeadReason =
  | 'attempts_used_up'
  | 'endpoint_gone'
  | 'endpoint_disabled'
  | 'not_configured'
  | 'undeliverable';

/** The delivery of one event to one destination */
export type Delivery = {
  id: number;
  /** The `webhook-id` header, the same for all attempts */
  event_id: string;
  event_type: string;
  /** null for events that concern no submission */
  submission_id: string | null;
  /** webhook:<id>, channel:<name>, or callback:<origin> */
  destination: string;
  state: DeliveryState;
  dead_reason: DeadReason | null;
  /** Attempts since it was created or last replayed */
  attempts_made: number;
  /** Of the newest attempt, also if that was before a replay; null without a response */
  last_http_status: number | null;
  /** Of the newest attempt, also if only some recipients of a mail refused it; null: none */
  last_error: string | null;
  /** Time of the next attempt */
  next_at: string | null;
  /** ISO 8601, UTC */
  created_at: string;
  /** ISO 8601, UTC */
  ended_at: string | null;
};

/** One request of a delivery */
export type DeliveryAttempt = {
  /** ISO 8601, UTC */
  at: string;
  duration_ms: number;
  /** null without a response, and for mail and queues, which have none */
  http_status: number | null;
  /** null on success with all recipients */
  error: string | null;
  /** Beginning of the response body, unchanged */
  response: string | null;
};

/** A delivery with its event and attempts */
export type DeliveryDetails = Delivery & {
  /** The event as sent */
  event: Event;
  /** All attempts, oldest first */
  attempts: DeliveryAttempt[];
};

/**
 * A state; failing: waiting for a retry after a failed attempt
 */
export type DeliveryFilter = 'waiting' | 'delivered' | 'dead' | 'discarded' | 'failing';

/** A page of deliveries */
export type DeliveryPage = {
  /** Newest first */
  deliveries: Delivery[];
  /** Send it as `cursor` to get the next page; null on the last page */
  next_cursor: string | null;
};

/**
 * waiting: for an attempt; dead: a dead letter; discarded: its webhook was deleted
 */
export type DeliveryState = 'waiting' | 'delivered' | 'dead' | 'discarded';

/** An event */
export type Event = SubmissionEvent | UpstreamEvent | AlertEvent | TestEvent | ChannelTestEvent;

/** A JSON Schema (2020-12) */
export type EventJsonSchema = {
  title: string;
  anyOf: {
    [key: string]: unknown;
  }[];
} & {
  [key: string]: unknown;
};

/** The submission at the time of the event */
export type EventSubmission = {
  submission_id: string;
  upstream: string;
  status: SubmissionStatus;
  /** The upstream's unchanged `state` */
  upstream_state: string | null;
  /** The upstream's unchanged `data`; integers beyond 2^53, such as a block_number, are strings */
  data: {
    [key: string]: unknown;
  } | null;
  error: string | null;
  chain: ChainVerdict;
  /** Why the chain does not confirm the block */
  chain_reason: string | null;
  /** ISO 8601, UTC */
  tracked_at: string;
  /** When dawatch first observed it as final */
  finalized_at: string | null;
  /** When it became final; `finalized_at` minus this is the detection lag. null: it is not final, or too little was known for an estimate */
  finality_at: string | null;
  finality_source: FinalitySource;
  metadata: {
    [key: string]: unknown;
  } | null;
  /** As requested; outages of the upstream extend it */
  deadline_at: string;
};

/**
 * How `finality_at` is known. chain: a node of the chain announced the block as final; estimate: it is the expected time, given the polls
 */
export type FinalitySource = 'chain' | 'estimate' | null;

/** The submissions of these ids */
export type FoundSubmissions = {
  /** In the order of the request, without duplicates */
  submissions: Submission[];
  /** Ids that were never tracked here */
  not_found: string[];
  /** Ids that were not looked up, because the response would exceed some MiB. Send them again */
  remaining: string[];
};

/** A change of a submission */
export type HistoryEntry = {
  /** Sequence number across all submissions */
  seq: number;
  /** ISO 8601, UTC */
  at: string;
  status: SubmissionStatus;
  previous_status: SubmissionStatus | null;
  upstream_state: string | null;
  /** The upstream's unchanged `data`; integers beyond 2^53, such as a block_number, are strings */
  data: {
    [key: string]: unknown;
  } | null;
  error: string | null;
  chain: ChainVerdict;
  /** Why the chain does not confirm the block */
  chain_reason: string | null;
  changes?: OptionChanges;
};

export type LedgerState = 'ok' | 'not_writable';

/** The process responds */
export type Liveness = {
  status: 'ok';
};

export type LookupRequest = {
  /** Up to 1000 ids */
  submission_ids: string[];
};

/** Alerts that it covers are recorded and not sent until its end */
export type Mute = {
  id: number;
  /** null: all alerts */
  rule: AlertRule | null;
  /** null: all alerts of the rule */
  subject: string | null;
  /** ISO 8601, UTC */
  until: string;
  reason: string;
  /** ISO 8601, UTC */
  created_at: string;
  /** Name of the credential */
  created_by: string;
};

/** All mutes that have not ended */
export type MuteList = {
  /** Newest first */
  mutes: Mute[];
};

export type NewCredential = {
  /** Name of the client, 1 to 64 characters of ASCII; appears in the audit */
  name: string;
  role: Role;
  /** Time from which the credential is refused; null: never */
  expires_at?: string | null;
};

export type NewMute = {
  /** Only alerts of this rule; null: all alerts */
  rule?: AlertRule | null;
  /** Only the alert about this subject, such as an upstream; requires `rule`. null: all alerts of the rule */
  subject?: string | null;
  /** End, within 366 days from now */
  until: string;
  /** A free text for operators */
  reason?: string;
};

export type NewWebhook = {
  /** URL that receives events by POST; must be https:// and no private address */
  url: string;
  /** Event types to send: exact types, or wildcards like submission.* and * */
  types?: string[];
  metadata?: {
    [key: string]: string | number | boolean | null;
  } | null;
  /** A free text for operators */
  description?: string;
  /** Further headers of every request, such as Authorization, for the receiver or a gateway before it. Their values are never returned */
  headers?: {
    [key: string]: string;
  };
  /**
   * Nothing is sent to a disabled webhook; its events become dead letters
   * @default true
   */
  enabled?: boolean;
  /** A secret of the receiver's choice: whsec_ and base64 of 24 to 64 bytes */
  secret?: string;
};

/** An OpenAPI 3.1 document */
export type OpenapiDocument = {
  openapi: string;
  info: {
    [key: string]: unknown;
  };
  paths: {
    [key: string]: {
      [key: string]: unknown;
    };
  };
} & {
  [key: string]: unknown;
};

/** Options that a client changed: values before and after. Of `callback_url` only scheme, host and port */
export type OptionChanges = {
  tracked_at?: ChangedTime;
  deadline_at?: ChangedTime;
  unknown_grace_s?: ChangedSeconds;
  stuck_after_s?: ChangedSeconds;
  metadata?: {
    from: {
      [key: string]: unknown;
    } | null;
    to: {
      [key: string]: unknown;
    } | null;
  };
  callback_url?: ChangedText;
  data_hash?: ChangedText;
};

/** The current state, and what became final in a range of time */
export type Overview = {
  /** Current time of the server */
  at: string;
  submissions: StatusCounts;
  range: OverviewRange;
  /** The steps of the range, oldest first; the newest is incomplete */
  steps: OverviewStep[];
  total: OverviewTotal;
  upstreams: {
    name: string;
    state: UpstreamState;
  }[];
  deliveries: {
    /** Not delivered yet */
    waiting: number;
    /** Of these, those that wait for a retry after a failed attempt */
    failing: number;
    /** Dead letters, which can be replayed */
    dead: number;
    /** Time since which the oldest one has waited; null if none waits */
    oldest_waiting_at: string | null;
  };
  /** Live workers; null without Redis */
  workers: number | null;
};

/** Seconds, exact to 5 % */
export type OverviewDetectionLag = {
  /** Seconds */
  p50: number;
  /** Seconds */
  p90: number;
  /** Seconds */
  p99: number;
  /** Number of submissions for which it is known */
  count: number;
  /** Those of them whose time of finality a node of the chain announced; the others are estimates */
  from_chain: number;
};

/**
 * Time up to now, in steps of minutes, hours or days (UTC)
 */
export type OverviewRange = '15m' | '1h' | '24h' | '7d' | '30d' | '90d';

/** A minute, an hour or a day */
export type OverviewStep = OverviewTotal & {
  /** Start of the step */
  at: string;
};

/** Of the whole range */
export type OverviewTotal = {
  /** Submissions found final */
  finalized: number;
  /** From tracking until found final; null if none was */
  time_to_finality_s: Spread | null;
  /** Time from finality to its detection. null while nothing is learned: without a known slot, the first ten submissions have no estimate */
  detection_lag_s: OverviewDetectionLag | null;
  /** Polls sent for submissions until they became final, divided by their number; null for fewer than 20 submissions */
  requests_per_submission: number | null;
};

/** The pacing of all upstreams */
export type Pacing = {
  /** Current time of the server */
  at: string;
  upstreams: UpstreamPacing[];
};

/**
 * heads: a node of the chain announces each final block, and polls follow it; slots: submissions become final in groups, with the slots of a chain, so that a poll of one is evidence about the others; age: no period is known, so each submission is polled by its age
 */
export type PacingMode = 'heads' | 'slots' | 'age';

/**
 * pending, finalized, error: the state that the upstream reports; not_found, rejected: it does not know or accept the id; unauthorized: it refuses the key; throttled: it requests a pause; unavailable: no usable response
 */
export type PollResult =
  | 'pending'
  | 'finalized'
  | 'error'
  | 'not_found'
  | 'rejected'
  | 'unauthorized'
  | 'throttled'
  | 'unavailable';

/** A problem document (RFC 9457) */
export type Problem = {
  /** The kind of problem: urn:dawatch:problem:… */
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The id of this request, as in the logs and in x-request-id */
  instance: string;
  /** The same as detail, on the routes of the upstream's own interface */
  error?: string;
  /** Invalid parts of the request; `pointer` is a JSON pointer into the body or the name of a parameter */
  errors?: {
    pointer: string;
    detail: string;
  }[];
};

/** Proof that a block contains the data of a submission */
export type Proof = {
  block_number: number;
  /** BLAKE2b-256 hash of the header */
  block_hash: string;
  /** In SCALE; it ends with the data root */
  header: string;
  /** Keccak-256 hash of the root of the submitted data and of `bridge_root` */
  data_root: string;
  /** Root of the bridge messages; zeros if there are none */
  bridge_root: string;
  /** Keccak-256 hash of the data */
  leaf: string;
  /** Position of the leaf, from 0 */
  index: number;
  /** Neighbours of the hash of the leaf and of the nodes above it, from the bottom */
  siblings: string[];
};

/** Whether submissions can be accepted, and the state of each component */
export type Readiness = {
  status: ReadinessStatus;
  ledger: LedgerState;
  upstreams: {
    [key: string]: {
      state: UpstreamState;
      /** The newest response of an outage or a pause; null if there is none. Operators only */
      reason?: string | null;
      /** While the state is paused: until when no request is sent; otherwise null */
      paused_until?: string | null;
      /** Submissions being polled; operators only */
      tracked?: number;
      /** Requests in flight; operators only */
      in_flight?: number;
      /** Nodes of the chain, present if one is configured; operators get more than the state. Without a node, polling continues, so it does not change `status` */
      chain?:
        | ChainStatus
        | {
            state: ChainState;
          };
    };
  };
  /** Present if Redis is configured */
  redis?: {
    state: RedisState;
    /** Names of the paused queues, whose jobs wait */
    paused: string[];
    /** Names of the connected workers; without any, this server polls. Operators only */
    workers?: string[];
  };
  /** Log lines since the start that could not be written; operators only */
  log_lines_dropped?: number;
};

/**
 * degraded: submissions are accepted, but an upstream is not up, or Redis
 */
export type ReadinessStatus = 'ok' | 'degraded' | 'unavailable';

/** A poll since the start of the server */
export type RecentPoll = {
  /** When the response arrived */
  at: string;
  duration_ms: number;
  result: PollResult;
};

/**
 * disconnected: this server polls alone; events for queues and queued submissions wait
 */
export type RedisState = 'up' | 'disconnected';

export type ReplayRequest = {
  /** The destination: webhook:<id>, channel:<name> or callback:<origin> */
  destination: string;
  /** Only deliveries with this last_error, also those that wait for a retry */
  error?: string;
};

/** They are scheduled again */
export type ReplayedDeliveries = {
  /** Number of deliveries that were scheduled again */
  replayed: number;
};

/**
 * service: submissions; user: lookups of single users; operator: reads submissions, webhooks, deliveries, channels and mutes; admin: everything
 */
export type Role = 'service' | 'user' | 'operator' | 'admin';

export type SecretRotation = {
  /**
   * Seconds for which the old secret also signs
   * @default 86400
   */
  keep_old_s?: number;
  /** A secret of the receiver's choice: whsec_ and base64 of 24 to 64 bytes */
  secret?: string;
};

/** The session of the dashboard */
export type Session = {
  /** Whether this request has the cookie of an open session */
  signed_in: boolean;
  /** When the session ends at the latest; it ends earlier if it is not used; null: not signed in */
  expires_at: string | null;
  /** Sign-in at the provider of OpenID Connect; null: only with a credential */
  oidc: {
    /** The page at which a browser begins the sign-in */
    url: string;
  } | null;
};

/** Seconds, exact to 5 % */
export type Spread = {
  /** Seconds */
  p50: number;
  /** Seconds */
  p90: number;
  /** Seconds */
  p99: number;
};

/** Number of submissions by status */
export type StatusCounts = {
  tracking: number;
  pending: number;
  failing: number;
  finalized: number;
  failed: number;
  unknown: number;
  rejected: number;
  expired: number;
  cancelled: number;
};

/** A tracked submission */
export type Submission = {
  submission_id: string;
  upstream: string;
  status: SubmissionStatus;
  /** The upstream's unchanged `state` */
  upstream_state: string | null;
  /** The upstream's unchanged `data`; integers beyond 2^53, such as a block_number, are strings */
  data: {
    [key: string]: unknown;
  } | null;
  error: string | null;
  chain: ChainVerdict;
  /** Why the chain does not confirm the block */
  chain_reason: string | null;
  /** ISO 8601, UTC */
  tracked_at: string;
  /** When dawatch first observed it as final */
  finalized_at: string | null;
  /** When it became final; `finalized_at` minus this is the detection lag. null: it is not final, or too little was known for an estimate */
  finality_at: string | null;
  finality_source: FinalitySource;
  metadata: {
    [key: string]: unknown;
  } | null;
  /** ISO 8601, UTC */
  deadline_at: string;
  /** Requests sent for this submission */
  polls: number;
  /** Time of the newest response to a poll, since it is tracked; null: it has not been polled yet */
  last_polled_at: string | null;
  /** The next poll is sent at this time at the earliest; null: none is planned, as for a final submission. While a poll is in flight, the end of the time in which its response is awaited */
  next_poll_at: string | null;
  /** Since when the upstream has responded that it has no such submission; null: it found it, or has not responded */
  not_found_since: string | null;
  /** Seconds for which "not found" means "not yet" */
  unknown_grace_s: number;
  /** Seconds after which the open submission is reported as stuck */
  stuck_after_s: number;
  /** Receives the events; only the role admin sees the whole address, others see scheme, host and port, because the rest may be secret */
  callback_url: string | null;
  /** Hash that the data must have; null: none is required */
  data_hash: string | null;
  /** Data root of the block that contains the data; null: there is no proof of them */
  data_root: string | null;
  /** Block explorer; absent if none is configured, or `data` have no block */
  explorer_url?: string;
};

/** A number of submissions */
export type SubmissionCount = {
  /** Number of submissions. If `next_cursor` is not null, only of those that were examined */
  count: number;
  /** Send it as `cursor` to count the rest, and add the numbers; null: nothing is left */
  next_cursor: string | null;
};

/** An event of a submission */
export type SubmissionEvent = {
  /** The same in every retry, so that receivers can drop duplicates */
  id: string;
  /** ISO 8601, UTC */
  timestamp: string;
  type: SubmissionEventType;
  data: {
    /** Counts over all events in the order of their commits: of two events of a submission, the larger is the newer one */
    sequence: number;
    submission: EventSubmission;
    /** The status before the event; equal if it did not change */
    previous_status: SubmissionStatus;
    previous_upstream_state: string | null;
    previous_error: string | null;
    /** The upstream's `data` before the event; equal if it did not change */
    previous_data: {
      [key: string]: unknown;
    } | null;
    /** True: the event would be 20 kB or more, so data of the upstream is left out or truncated; `href` has all of it */
    cut: boolean;
    /** Path of the submission on the dawatch server */
    href: string;
  };
};

export type SubmissionEventType =
  | 'submission.finalized'
  | 'submission.failing'
  | 'submission.recovered'
  | 'submission.failed'
  | 'submission.unknown'
  | 'submission.rejected'
  | 'submission.expired'
  | 'submission.cancelled'
  | 'submission.retracked'
  | 'submission.stuck'
  | 'submission.corrected'
  | 'submission.contradicted';

/** A page of submissions */
export type SubmissionPage = {
  /** In the order of the list */
  submissions: Submission[];
  /** Send it as `cursor` to get the next page; null on the last page */
  next_cursor: string | null;
};

/** Absent fields are unchanged */
export type SubmissionPatch = {
  /** Deadline for finality, ISO 8601, or the duration until then: 90s, 10m, 24h, 7d or PT10M. After it the submission ends as failed or expired */
  deadline?: string;
  /** Seconds for which "not found" means "not yet", from the first such answer on. At least 120 s apply */
  unknown_grace_s?: number;
  /** Seconds after which an open submission is reported as stuck */
  stuck_after_s?: number;
  /** Replaces the whole object; null removes it */
  metadata?: {
    [key: string]: unknown;
  } | null;
  /** Receives the events from now on, and those that were not delivered to the earlier URL; null: no further events are sent */
  callback_url?: string | null;
  /** Hash of the submitted data; null: none is required */
  data_hash?: string | null;
};

/**
 * Every status but tracking, pending and failing is final
 */
export type SubmissionStatus =
  | 'tracking'
  | 'pending'
  | 'failing'
  | 'finalized'
  | 'failed'
  | 'unknown'
  | 'rejected'
  | 'expired'
  | 'cancelled';

/** A tracked submission with its history */
export type SubmissionWithHistory = Submission & {
  /** One entry per change, oldest first */
  history: HistoryEntry[];
};

/** A test of one webhook */
export type TestEvent = {
  /** The same in every retry, so that receivers can drop duplicates */
  id: string;
  /** ISO 8601, UTC */
  timestamp: string;
  type: 'webhook.test';
  data: {
    /** Counts over all events in the order of their commits: of two events of a submission, the larger is the newer one */
    sequence: number;
    webhook_id: string;
  };
};

/** A submission with its own options */
export type TrackItem = {
  /** The id that the upstream returned. A UUID is compared and shown in lower case, any other id unchanged */
  submission_id: string;
  /** Name of a configured upstream; "default" if absent */
  upstream?: string;
  /** Deadline for finality, ISO 8601, or the duration until then: 90s, 10m, 24h, 7d or PT10M. After it the submission ends as failed or expired */
  deadline?: string;
  /** Seconds for which "not found" means "not yet", from the first such answer on. At least 120 s apply */
  unknown_grace_s?: number;
  /** Seconds after which an open submission is reported as stuck */
  stuck_after_s?: number;
  /** Any object; returned with the submission and in its events */
  metadata?: {
    [key: string]: unknown;
  };
  /** Receives the events of the submission, signed with the secret of the webhook `callbacks` */
  callback_url?: string;
  /** BLAKE2b-256 hash of the submitted data, with `verify_data` also Keccak-256: 0x and 64 hexadecimal digits in any case. If the upstream reports another one, the submission is contradicted; with `verify_data`, unavailable if the block has the data of the upstream. Where the upstream encrypts, the hash of the encrypted data */
  data_hash?: string;
  /** For an import: since when another system has tracked it, ISO 8601; not in the future, and at most 3660 days ago. stuck_after_s counts from then, a default deadline from now. A deadline that has passed since then is accepted: the submission is polled before it ends */
  tracked_at?: string;
  /** True: ids that ended as failed, unknown, rejected, expired or cancelled are tracked again, with the time limits of this request; `metadata` and `callback_url` replace the earlier ones if present. Finalized ids stay as they are */
  retrack?: boolean;
};

/**
 * An option of a tracked submission
 */
export type TrackOption =
  | 'deadline'
  | 'unknown_grace_s'
  | 'stuck_after_s'
  | 'metadata'
  | 'callback_url'
  | 'data_hash';

export type TrackRequest = {
  /** The id that the upstream returned. A UUID is compared and shown in lower case, any other id unchanged */
  submission_id?: string;
  /** Up to 1000 ids; all are tracked or none */
  submission_ids?: string[];
  /** Up to 1000 submissions, each with its own options; all are tracked or none. The options beside this list apply to each submission that has no such option of its own */
  submissions?: TrackItem[];
  /** Name of a configured upstream; "default" if absent */
  upstream?: string;
  /** Deadline for finality, ISO 8601, or the duration until then: 90s, 10m, 24h, 7d or PT10M. After it the submission ends as failed or expired */
  deadline?: string;
  /** Seconds for which "not found" means "not yet", from the first such answer on. At least 120 s apply */
  unknown_grace_s?: number;
  /** Seconds after which an open submission is reported as stuck */
  stuck_after_s?: number;
  /** Any object; returned with the submission and in its events */
  metadata?: {
    [key: string]: unknown;
  };
  /** Receives the events of the submission, signed with the secret of the webhook `callbacks` */
  callback_url?: string;
  /** BLAKE2b-256 hash of the submitted data, with `verify_data` also Keccak-256: 0x and 64 hexadecimal digits in any case. If the upstream reports another one, the submission is contradicted; with `verify_data`, unavailable if the block has the data of the upstream. Where the upstream encrypts, the hash of the encrypted data */
  data_hash?: string;
  /** For an import: since when another system has tracked it, ISO 8601; not in the future, and at most 3660 days ago. stuck_after_s counts from then, a default deadline from now. A deadline that has passed since then is accepted: the submission is polled before it ends */
  tracked_at?: string;
  /** True: ids that ended as failed, unknown, rejected, expired or cancelled are tracked again, with the time limits of this request; `metadata` and `callback_url` replace the earlier ones if present. Finalized ids stay as they are */
  retrack?: boolean;
};

/** The submissions are stored on disk */
export type TrackedSubmissions = {
  /** Number of newly tracked submissions */
  accepted: number;
  /** Number of submissions that were open already */
  already_tracked: number;
  /** Number of submissions that had ended, which `already_tracked` does not include; `retrack` tracks them again */
  already_final: number;
  /** Number of ended submissions that are tracked again */
  retracked: number;
  /** Options of the request of which known submissions have other values, which they keep; PATCH changes those of an open one */
  kept_options: TrackOption[];
  /** In the order of the request, without duplicates */
  submissions: Submission[];
};

/** An event of an upstream */
export type UpstreamEvent = {
  /** The same in every retry, so that receivers can drop duplicates */
  id: string;
  /** ISO 8601, UTC */
  timestamp: string;
  type: UpstreamEventType;
  data: {
    /** Counts over all events in the order of their commits: of two events of a submission, the larger is the newer one */
    sequence: number;
    upstream: string;
    /** The response that began the outage, such as HTTP 503; also in the event of its end */
    reason: string;
  };
};

export type UpstreamEventType = 'upstream.down' | 'upstream.up' | 'upstream.unauthorized';

/** The pacing of one upstream */
export type UpstreamPacing = {
  upstream: string;
  state: UpstreamState;
  /** The newest response of an outage or a pause; null if there is none */
  reason: string | null;
  /** While the state is paused: until when no request is sent; otherwise null */
  paused_until: string | null;
  /** Submissions being polled */
  tracked: number;
  /** Requests that one second of lag is worth, as configured */
  lag_price: number;
  mode: PacingMode;
  /** null if no slots are known */
  slot: {
    /** Length of a slot */
    period_ms: number;
    /** Median of the predicted time at which the next group becomes final */
    next_event_at: string;
    /** Share of slots in which nothing becomes final, 0 to 1 */
    empty_share: number;
  } | null;
  /** null if no chain is configured */
  chain: ChainStatus | null;
  /** Recently finalized submissions this was learned from; 0 for the initial assumption */
  observed: number;
  /** Learned distribution of finality time for a submission tracked now; empty if there is none yet */
  curve: {
    /** Time since tracking */
    after_ms: number;
    /** Probability that the submission is final by then, 0 to 1 */
    probability: number;
  }[];
  /** Poll times of that submission in ms since tracking, without evidence from other submissions */
  polls_ms: number[];
  /** What became final in this minute and the 59 before it, as in the overview */
  last_hour: {
    /** Submissions found final */
    finalized: number;
    /** Polls sent for submissions until they became final, divided by their number; null for fewer than 20 submissions */
    requests_per_submission: number | null;
    /** Mean time from finality to its detection, exact to 5 %; null if it is known of fewer than 20 submissions */
    mean_lag_s: number | null;
  };
  budget: {
    /** Requests per window */
    requests: number;
    /** Length of the window in ms */
    per_ms: number;
    /** Requests used in the current window */
    used: number;
    /** Limit of requests in flight */
    concurrency: number;
    /** Requests in flight */
    in_flight: number;
  };
  /** Polls of the last 2 minutes, oldest first; those since the start of the server, the newest 2,000 at most */
  recent_polls: RecentPoll[];
};

/**
 * up: it responds; down: it does not; unauthorized: it refuses the key; paused: it asked for no requests for more than 30 s, with 429 or Retry-After
 */
export type UpstreamState = 'up' | 'down' | 'unauthorized' | 'paused';

/** The upstream's own response, unchanged */
export type UpstreamSubmission = {
  id?: string;
  state: string;
  error: unknown;
  data?: {
    [key: string]: unknown;
  } | null;
} & {
  [key: string]: unknown;
};

/** The upstream's record of a user, with every field unchanged; fields vary between upstreams */
export type User = {
  id?: string | null;
  name?: string | null;
  email?: string | null;
  /** A string if it is too large for a JSON number */
  app_id?: number | string | null;
  assigned_wallet?: string | null;
} & {
  [key: string]: unknown;
};

/**
 * The token that user lookups require: one of dawatch, or the upstream's own, which is forwarded
 */
export type UsersBearer = 'dawatch' | 'upstream';

/** A webhook, without its secret */
export type Webhook = {
  id: string;
  /** null for callbacks, whose addresses come with the submissions; only the role admin sees the whole address, others see scheme, host and port, because the rest may be secret */
  url: string | null;
  types: string[];
  metadata: {
    [key: string]: unknown;
  } | null;
  description: string;
  /** Names of the further headers of its requests */
  header_names: string[];
  enabled: boolean;
  disabled_reason: WebhookDisabledReason | null;
  /** Time since which every attempt has failed */
  failing_since: string | null;
  /** null without attempts in the last 24 hours */
  last_day: WebhookDay | null;
  /** ISO 8601, UTC */
  created_at: string;
  /** ISO 8601, UTC */
  updated_at: string;
};

/** Attempts in the current hour and the 24 hours before it, with retries and tests; a restart does not reset them */
export type WebhookDay = {
  attempts: number;
  /** Share of attempts that were answered with 2xx, 0 to 1 */
  success_rate: number;
  /** 95th percentile of the response time, exact to 5 %; null without a response */
  response_p95_ms: number | null;
};

/** A webhook with its failures by their error */
export type WebhookDetails = Webhook & {
  /** Most frequent first. Counts at most 10,000 deliveries of each state */
  failures: WebhookFailure[];
};

/**
 * operator: by an operator; gone: by a 410 of the receiver; failing: after days without a success
 */
export type WebhookDisabledReason = 'operator' | 'gone' | 'failing';

export type WebhookFailure = {
  /** Of the newest attempt; null: none was made */
  error: string | null;
  /** Number of deliveries that wait for a retry */
  failing: number;
  /** Number of dead letters */
  dead: number;
};

/** A page of webhooks */
export type WebhookPage = {
  /** Newest first */
  webhooks: Webhook[];
  /** Send it as `cursor` to get the next page; null on the last page */
  next_cursor: string | null;
};

/** Absent fields are unchanged. `metadata: null` removes the filter. `headers` replaces all further headers */
export type WebhookPatch = {
  /** URL that receives events by POST; must be https:// and no private address */
  url?: string;
  /** Event types to send: exact types, or wildcards like submission.* and * */
  types?: string[];
  metadata?: {
    [key: string]: string | number | boolean | null;
  } | null;
  /** A free text for operators */
  description?: string;
  /** Further headers of every request, such as Authorization, for the receiver or a gateway before it. Their values are never returned */
  headers?: {
    [key: string]: string;
  };
  /** Nothing is sent to a disabled webhook; its events become dead letters */
  enabled?: boolean;
};

/** A webhook with its new secret */
export type WebhookWithSecret = Webhook & {
  /** Returned only here */
  secret: string;
};

/** The credential of this request */
export type Whoami = {
  role: Role;
  /** Name of the credential, as in the audit; of a person who signed in by OpenID Connect, the e-mail address or subject */
  name: string;
  users_bearer: UsersBearer;
};

export type ListSubmissionsQuery = CountSubmissionsQuery & {
  /** A whole number from 1 to 1000 */
  limit?: number | undefined;
};

export type CountSubmissionsQuery = {
  /** Only submissions in these statuses, separated by commas or repeated: tracking, pending, failing, finalized, failed, unknown, rejected, expired, cancelled */
  status?: string | undefined;
  /** Only submissions about which the chain says this, separated by commas or repeated: confirmed, contradicted, unavailable */
  chain?: string | undefined;
  /** Only submissions of this upstream */
  upstream?: string | undefined;
  /** Only submissions whose metadata has these values: an object as JSON, or one parameter `metadata.<name>=<value>` per value, up to 10. Values are compared as text, so that 4711 finds the number and the text. Only values at the top level are found: text of up to 256 bytes, numbers, true, false and null, the first 32 of a submission */
  metadata?: string | undefined;
  /** Only submissions tracked at this time or later */
  tracked_since?: string | undefined;
  /** Only submissions tracked before this time */
  tracked_until?: string | undefined;
  /** Only submissions that became final at this time or later */
  ended_since?: string | undefined;
  /** Only submissions that became final before this time */
  ended_until?: string | undefined;
  /** Only ids with this prefix; UUIDs in any case */
  prefix?: string | undefined;
  /** Only open submissions that are reported as stuck */
  stuck?: 'true' | undefined;
  /** `next_cursor` of the previous page */
  cursor?: string | undefined;
};

export type WaitForSubmissionQuery = {
  /** A whole number from 0 to 240 */
  timeout_s?: number | undefined;
};

export type GetSubmissionInfoQuery = {
  /** The id that the upstream returned. A UUID is compared and shown in lower case, any other id unchanged */
  submission_id: string;
  /** Name of a configured upstream; "default" if absent */
  upstream?: string | undefined;
};

export type ReadEventsQuery = {
  /** The same for a first request; 0 starts at the first event */
  after?: number | undefined;
  /** Only events of these types: exact ones, or wildcards like submission.*; comma-separated or repeated */
  type?: string | undefined;
  /** Only events about this submission */
  submission_id?: string | undefined;
  /** Only events about submissions with this metadata, as JSON: {"team":"billing"} */
  metadata?: string | undefined;
};

export type GetOverviewQuery = {
  /** What `steps` and `total` are about */
  range?: OverviewRange | undefined;
};

export type ListAlertsQuery = {
  /** Only alerts in this state */
  state?: AlertState | undefined;
  /** A whole number from 1 to 1000 */
  limit?: number | undefined;
  /** `next_cursor` of the previous page */
  cursor?: string | undefined;
};

export type GetUserQuery = {
  /** The user's name, without control characters */
  name: string;
  /** The user's e-mail address; in a query, + is written %2B */
  email: string;
};

export type GetUserOtherSpellingQuery = {
  /** The user's name, without control characters */
  name: string;
  /** The user's e-mail address; in a query, + is written %2B */
  email: string;
};

export type GetAllUsersQuery = {
  /** A whole number from 1 to 1000 */
  limit: number;
};

export type ListAuditQuery = {
  /** All entries, without limit, cursor and conditions */
  format?: 'ndjson' | undefined;
  /** Only entries of this caller: name of a credential, or address of a person */
  caller?: string | undefined;
  /** Only entries about the person with this e-mail address, or this `email_hash` */
  email?: string | undefined;
  /** Only these actions, separated by commas or repeated */
  action?: string | undefined;
  /** Only entries about this subject */
  subject?: string | undefined;
  /** Only entries at this time or later */
  since?: string | undefined;
  /** Only entries before this time */
  until?: string | undefined;
  /** A whole number from 1 to 1000; 100 if absent */
  limit?: number | undefined;
  /** `next_cursor` of the previous page */
  cursor?: string | undefined;
};

export type ListCredentialsQuery = {
  /** A whole number from 1 to 1000 */
  limit?: number | undefined;
  /** `next_cursor` of the previous page */
  cursor?: string | undefined;
};

export type ListWebhooksQuery = {
  /** A whole number from 1 to 1000 */
  limit?: number | undefined;
  /** `next_cursor` of the previous page */
  cursor?: string | undefined;
};

export type ListDeliveriesQuery = {
  /** Only deliveries to this destination: webhook:<id>, channel:<name> or callback:<origin> */
  destination?: string | undefined;
  /** Only deliveries in this state */
  state?: DeliveryFilter | undefined;
  /** Only deliveries of events about this submission */
  submission_id?: string | undefined;
  /** A whole number from 1 to 1000 */
  limit?: number | undefined;
  /** `next_cursor` of the previous page */
  cursor?: string | undefined;
};
