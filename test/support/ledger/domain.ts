import type { HttpResult } from '../../../src/lib/http-call.ts';
import type { Classification, Observation } from '../../../src/submissions/classify.ts';
import {
  byKey,
  type HistoryEntry,
  type Status,
  type Submission,
} from '../../../src/submissions/submission.ts';
import {
  contextOfRequest,
  type TransitionContext,
  type TransitionResult,
} from '../../../src/submissions/transition.ts';
import type { Ledger } from './ledger-file.ts';

export const ID = '6a1b8f4e-53f1-4d0e-9d35-0f7f2f0f9c11';
export const OTHER_ID = '0c9e2d7a-1111-4222-8333-444455556666';

export type Fields = Record<string, unknown>;

/** `data` of a finalized submission, as upstreams return it. */
export const FINAL_DATA: Fields = {
  amount_data: '4.00 B',
  block_hash: '0xb1',
  block_number: 1_234_567,
  created_at: '2026-01-02T03:04:05.123456',
  data_billed: '4',
  data_hash: '0xd1',
  fees: '124361091113205017',
  tx_hash: '0xa1',
  tx_index: 3,
  user_id: 'user-1',
};

/** `data` of a pending submission: the fields that the chain determines are present and null. */
export const PENDING_DATA: Fields = {
  ...FINAL_DATA,
  block_hash: null,
  block_number: null,
  data_billed: null,
  data_hash: null,
  fees: null,
  tx_hash: null,
  tx_index: null,
};

export function envelope(fields: Fields = {}): Fields {
  return { id: ID, state: 'Pending', error: null, data: PENDING_DATA, ...fields };
}

export function finalEnvelope(data: Fields = {}, fields: Fields = {}): Fields {
  return envelope({ state: 'Finalized', data: { ...FINAL_DATA, ...data }, ...fields });
}

/** An HTTP response; a body that is not a string is sent as JSON. */
export function response(
  httpStatus: number,
  body: unknown,
  headers: { retryAfter?: string; date?: string } = {},
): HttpResult {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return {
    kind: 'response',
    httpStatus,
    retryAfter: headers.retryAfter ?? null,
    date: headers.date ?? null,
    body: text,
  };
}

/** A submission with limits only: tracked at 0, grace to 1,000, stuck at 2,000, deadline 10,000. */
export function submission(fields: Partial<Submission> = {}): Submission {
  return {
    submissionId: ID,
    upstream: 'default',
    deadlineAt: 10_000,
    graceEndsAt: 1_000,
    stuckAt: 2_000,
    metadata: null,
    callbackUrl: null,
    ...byKey(() => null),
    status: 'tracking',
    trackedAt: 0,
    finalizedAt: null,
    finalityAt: null,
    finalitySource: null,
    polledAt: null,
    notFoundSince: null,
    polls: 0,
    stuck: false,
    watched: true,
    version: 1,
    upstreamState: null,
    error: null,
    envelope: null,
    chain: null,
    chainReason: null,
    proof: null,
    ...fields,
  };
}

export function context(fields: Partial<TransitionContext> = {}): TransitionContext {
  return { ...contextOfRequest(Number.MAX_SAFE_INTEGER), ...fields };
}

const pendingText = JSON.stringify(envelope());
const finalText = JSON.stringify(finalEnvelope());
const errorText = JSON.stringify(envelope({ state: 'Error', error: 'TIMEOUT', data: null }));

/** One classification of every kind. */
export const VERDICTS = {
  pending: {
    kind: 'pending',
    state: 'Pending',
    error: null,
    envelope: pendingText,
    blockNumber: null,
  },
  finalized: {
    kind: 'finalized',
    state: 'Finalized',
    error: null,
    envelope: finalText,
    blockNumber: 1_234_567,
  },
  error: { kind: 'error', state: 'Error', error: 'TIMEOUT', envelope: errorText },
  not_found: { kind: 'not_found', error: 'submission not found', ambiguous: false },
  not_found_500: { kind: 'not_found', error: 'Record not found', ambiguous: true },
  rejected: { kind: 'rejected', error: 'invalid character' },
  unauthorized: { kind: 'unauthorized', error: 'Missing API key' },
  throttled: { kind: 'throttled', error: 'HTTP 429', retryAfterMs: null },
  unavailable: { kind: 'unavailable', reason: 'timeout', error: 'no answer', retryAfterMs: null },
} as const satisfies Record<string, Classification>;
export type VerdictName = keyof typeof VERDICTS;

export function observation(
  verdict: VerdictName | Classification,
  at: number,
  submissionId = ID,
): Observation {
  return {
    submissionId,
    at,
    durationMs: 1,
    ...(typeof verdict === 'string' ? VERDICTS[verdict] : verdict),
  };
}

/** Applies a transition result as the ledger does. */
export function applied(before: Submission, result: TransitionResult, at: number): Submission {
  const { watched, becameStuck, notFoundSince } = result;
  const stuck = before.stuck || becameStuck;
  const after = {
    ...before,
    watched,
    stuck,
    notFoundSince,
    polledAt: at,
  };
  const { change } = result;
  if (!change) return after;
  const { status, upstreamState, error, envelope, chain } = change;
  const finalizedAt = status === 'finalized' ? (before.finalizedAt ?? at) : null;
  return {
    ...after,
    status,
    upstreamState,
    error,
    envelope,
    chain: chain?.verdict ?? null,
    chainReason: chain?.reason ?? null,
    finalizedAt,
    version: before.version + 1,
  };
}

/** Returns the history of a submission, oldest change first; empty for an unknown id. */
export function historyOf(
  { submissions }: Pick<Ledger, 'submissions'>,
  submissionId: string,
): HistoryEntry[] {
  return submissions.getWithHistory(submissionId)?.history ?? [];
}

/** The legal status transitions, written independently of `transition.ts`. */
export const LEGAL: Record<Status, readonly Status[]> = {
  tracking: [
    'pending',
    'failing',
    'finalized',
    'failed',
    'unknown',
    'rejected',
    'expired',
    'cancelled',
  ],
  pending: ['pending', 'failing', 'finalized', 'failed', 'expired', 'cancelled'],
  failing: ['failing', 'pending', 'finalized', 'failed', 'expired', 'cancelled'],
  finalized: ['finalized'],
  failed: [],
  unknown: [],
  rejected: [],
  expired: [],
  cancelled: [],
};
