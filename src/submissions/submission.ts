import { z } from 'zod';

/** The upstream's own `state` is stored unchanged beside it. */
export const Status = {
  /** Accepted, not found upstream yet. */
  tracking: 'tracking',
  /** Found upstream, not final. */
  pending: 'pending',
  /** The upstream reports Error. Provisional, because it may send the submission again. */
  failing: 'failing',
  finalized: 'finalized',
  /** Still Error at the deadline. */
  failed: 'failed',
  /** Not found for the whole grace period. */
  unknown: 'unknown',
  /** The upstream refuses the id. */
  rejected: 'rejected',
  /** The deadline passed. */
  expired: 'expired',
  /** Cancelled by a client. */
  cancelled: 'cancelled',
} as const;
export type Status = (typeof Status)[keyof typeof Status];

export const STATUSES = Object.values(Status);
export const FINAL_STATUSES = [
  Status.finalized,
  Status.failed,
  Status.unknown,
  Status.rejected,
  Status.expired,
  Status.cancelled,
] as const;

const finals: ReadonlySet<Status> = new Set(FINAL_STATUSES);
export function isFinal(status: Status): boolean {
  return finals.has(status);
}

/** A finalized submission cannot be tracked again: the chain does not revert it. */
export function canRetrack(status: Status): boolean {
  return isFinal(status) && status !== Status.finalized;
}

/** Callers cannot change a submission with such a history, which bounds the size of responses. */
export const MAX_HISTORY = 1_000;

/** Printable ASCII without spaces. */
export const SUBMISSION_ID_PATTERN = /^[\x21-\x7e]{1,128}$/;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const UUID_LAYOUT = '00000000-0000-0000-0000-000000000000';

/**
 * Returns the id as compared, stored and shown: a UUID in lower case (RFC 9562), any other
 * unchanged, also other spellings of a UUID.
 */
export function canonicalId(id: string): string {
  return UUID.test(id) ? id.toLowerCase() : id;
}

/** Returns a prefix of a UUID in lower case; undefined if no UUID has this prefix. */
export function uuidPrefix(prefix: string): string | undefined {
  return UUID.test(prefix + UUID_LAYOUT.slice(prefix.length)) ? prefix.toLowerCase() : undefined;
}

/** Of new ids. Others come from a line of CSV or JSON, and HTTP clients change `.` and `..`. */
export const NEW_ID_PATTERN = /^(?!(?:\.\.?|null|undefined|true|false)$)[^"'`{}[\],]*$/;

/** What a node of the chain says about the block that the upstream names. */
export const CHAIN_VERDICTS = ['confirmed', 'contradicted', 'unavailable'] as const;
export type ChainVerdict = (typeof CHAIN_VERDICTS)[number];

/** A block whose hash covers its header, and whose data root was reproduced. In hexadecimal. */
export type ProvenBlock = {
  hash: string;
  /** In SCALE. */
  header: string;
  dataRoot: string;
  bridgeRoot: string;
  /** Keccak-256 hashes of the submitted data, 32 bytes each, in the order of their tree. */
  leaves: Buffer;
};

/** `leaf`: index of that of the data. `block`: of a proof that is not stored yet. */
type ChainProof = { blockHash: string; leaf: number; dataRoot: string; block?: ProvenBlock };

/** `reason`: why it is not confirmed, in one sentence; null: it is confirmed. */
export type ChainResult = {
  verdict: ChainVerdict;
  reason: string | null;
  proof?: ChainProof | null;
  /** Whether only another body of the block, or another claim, would change it. */
  isSettled?: boolean;
};

/**
 * Options stored and returned as text, in a column of this name; PATCH with null removes one.
 * `key`: its name in Submission. `patch`, `returned`: what it means there.
 */
export const TEXT_OPTIONS = [
  {
    name: 'data_hash',
    key: 'dataHash',
    schema: z
      .string()
      .regex(
        /^0x[0-9a-f]{64}$/i,
        'must be 0x and 64 hexadecimal digits: the BLAKE2b-256 or Keccak-256 hash of the data',
      )
      .toLowerCase()
      .describe(
        'BLAKE2b-256 hash of the submitted data, with `verify_data` also Keccak-256: 0x and 64 hexadecimal digits in any case. If the upstream reports another one, the submission is contradicted; with `verify_data`, unavailable if the block has the data of the upstream. Where the upstream encrypts, the hash of the encrypted data',
      ),
    patch: 'Hash of the submitted data; null: none is required',
    returned: 'Hash that the data must have; null: none is required',
  },
] as const;

type TextOption = (typeof TEXT_OPTIONS)[number];
type TextName = TextOption['name'];
type TextKey = TextOption['key'];

export type TextFields = Record<TextKey, string | null>;

/** Returns a value for each text option, by its name in requests and responses. */
export function byName<Value>(value: (option: TextOption) => Value): Record<TextName, Value> {
  const entries = TEXT_OPTIONS.map((option) => [option.name, value(option)]);
  return Object.fromEntries(entries) as Record<TextName, Value>;
}

/** Returns a value for each text option, by its name in Submission. */
export function byKey<Value>(value: (option: TextOption) => Value): Record<TextKey, Value> {
  const entries = TEXT_OPTIONS.map((option) => [option.key, value(option)]);
  return Object.fromEntries(entries) as Record<TextKey, Value>;
}

/** Returns the text options that have a value, by their names in Submission. */
export function textsWith(
  value: (option: TextOption) => string | null | undefined,
): Partial<TextFields> {
  const entries = TEXT_OPTIONS.map((option) => [option.key, value(option)]);
  return Object.fromEntries(entries.filter(([, text]) => text !== undefined));
}

/** Returns the text options of a request; those that it does not name are null. */
export function textsOf(request: Partial<TextFields>): TextFields {
  return byKey(({ key }) => request[key] ?? null);
}

/** The options of a tracking request, named as in its body. */
export const TRACK_OPTIONS = [
  'deadline',
  'unknown_grace_s',
  'stuck_after_s',
  'metadata',
  'callback_url',
  ...TEXT_OPTIONS.map(({ name }) => name),
] as const;
export type TrackOption = (typeof TRACK_OPTIONS)[number];

export type TrackRequest = {
  submissionId: string;
  upstream: string;
  deadlineAt: number;
  /** End of the grace period, in which "not found" means "not yet"; see transition.ts. */
  graceEndsAt: number;
  stuckAt: number;
  metadata: Record<string, unknown> | null;
  callbackUrl: string | null;
  /** When the request was validated; absent: at the commit. See limitsFrom. */
  requestedAt?: number;
  retrack?: boolean;
  named?: readonly TrackOption[];
  /** Import: since when another system has tracked it. Absent: from the commit on. */
  trackedAt?: number;
} & Partial<TextFields>;

/** chain: a node announced the block. estimate: from the polls. */
export const FINALITY_SOURCES = ['chain', 'estimate'] as const;
export type FinalitySource = (typeof FINALITY_SOURCES)[number];

type Options = Omit<TrackRequest, 'requestedAt' | 'retrack' | 'named' | keyof TextFields> &
  TextFields;

/** A submission in the ledger. Times are epoch milliseconds. */
export type Submission = Options & {
  status: Status;
  /** When tracking began; if the submission was tracked again, when it last began. */
  trackedAt: number;
  finalizedAt: number | null;
  /** When it became final; null: it is not final, or too little was known for an estimate. */
  finalityAt: number | null;
  finalitySource: FinalitySource | null;
  polledAt: number | null;
  /** Since when it is not found; null: the newest definite response found it, or there was none. */
  notFoundSince: number | null;
  polls: number;
  stuck: boolean;
  /** Whether it is still polled: it is open, or finalized and awaits its recheck. */
  watched: boolean;
  /** Number of its newest history row, counted from 1 without gaps. */
  version: number;
  upstreamState: string | null;
  error: string | null;
  envelope: string | null;
  /** What the chain says about the block in the newest envelope; null: it was not verified. */
  chain: ChainVerdict | null;
  chainReason: string | null;
  /** null: the chain has not confirmed the data. */
  proof: ChainProof | null;
};

/** Whether the upstream reports it as final, and a required confirmation is missing. */
export function isHeld({ status, chain }: Pick<Submission, 'status' | 'chain'>): boolean {
  return status === Status.pending && chain !== null;
}

/** The times of a submission that is not final. */
export const NO_FINALITY = { finalizedAt: null, finalityAt: null, finalitySource: null };

type Pair<T> = [before: T, after: T];

/** The options of a submission that one request changed. Times and durations are milliseconds. */
export type OptionChanges = {
  trackedAt?: Pair<number> | undefined;
  deadlineAt?: Pair<number> | undefined;
  unknownGraceMs?: Pair<number> | undefined;
  stuckAfterMs?: Pair<number> | undefined;
  metadata?: Pair<Record<string, unknown> | null> | undefined;
  /** Scheme, host and port: the rest of the URL may hold secrets. */
  callbackOrigin?: Pair<string | null> | undefined;
} & { [Key in keyof TextFields]?: Pair<string | null> | undefined };

export type HistoryEntry = {
  seq: number;
  version: number;
  at: number;
  status: Status;
  previousStatus: Status | null;
  upstreamState: string | null;
  error: string | null;
  envelope: string | null;
  chain: ChainVerdict | null;
  chainReason: string | null;
  changes: OptionChanges | null;
};
