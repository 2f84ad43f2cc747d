import { describe, expect, it } from 'vitest';
import type { ChainResult } from '../../src/submissions/chain-verdict.ts';
import type { Observation } from '../../src/submissions/classify.ts';
import {
  FINAL_STATUSES,
  STATUSES,
  type Status,
  type Submission,
} from '../../src/submissions/submission.ts';
import {
  type TransitionInput,
  type TransitionResult,
  transition,
} from '../../src/submissions/transition.ts';
import {
  applied,
  context,
  finalEnvelope,
  observation,
  submission,
  VERDICTS,
  type VerdictName,
} from '../support/ledger/domain.ts';

const INPUTS = [...(Object.keys(VERDICTS) as VerdictName[]), 'cancel'] as const;
const STATUS_OF_EVENT: Record<string, Status> = { recovered: 'pending', corrected: 'finalized' };
const DEADLINE = submission().deadlineAt;
const FAILURE_LIMIT = DEADLINE + 5 * 60_000;

const LAST_RESPONSE = {
  pending: VERDICTS.pending,
  failing: VERDICTS.error,
  finalized: VERDICTS.finalized,
} as const;

/** A submission with this status and the response that caused it. */
function of(status: Status, fields: Partial<Submission> = {}): Submission {
  const lastResponse =
    status === 'pending' || status === 'failing' || status === 'finalized'
      ? LAST_RESPONSE[status]
      : null;
  const last = lastResponse && {
    upstreamState: lastResponse.state,
    error: lastResponse.error,
    envelope: lastResponse.envelope,
  };
  return submission({ status, stuck: true, ...last, ...fields });
}

function input(name: (typeof INPUTS)[number], at: number): TransitionInput {
  return name === 'cancel' ? { kind: 'cancel', at } : observation(name, at);
}

/** The submission has had no response since its deadline. */
const FAILING_SINCE_DEADLINE = { noResponseSince: DEADLINE };

/**
 * A cell of the tables: the reported event, or the new status in brackets if none is reported, or a
 * dot if nothing changes.
 */
function cell({ change }: TransitionResult): string {
  if (!change) return '·';
  if (!change.event) return `(${change.status})`;
  const event = change.event.replace('submission.', '');
  expect(change.status, `the status reported as ${event}`).toBe(STATUS_OF_EVENT[event] ?? event);
  return event;
}

/**
 * Columns: pending, finalized, error, not found (404), not found (500), rejected, unauthorized,
 * throttled, unavailable, cancel.
 */
type Table = Record<Status, string>;
const NOTHING =
  '·           ·           ·          ·         ·         ·          ·  ·  ·         ·';
const FINAL = {
  finalized: 'corrected   ·           corrected  ·         ·         ·          ·  ·  ·         ·',
  failed: NOTHING,
  unknown: NOTHING,
  rejected: NOTHING,
  expired: NOTHING,
  cancelled: NOTHING,
};
const WITHIN_GRACE: Table = {
  tracking:
    ' (pending)   finalized   failing    ·         ·         rejected   ·  ·  ·         cancelled',
  pending:
    '  ·           finalized   failing    ·         ·         ·          ·  ·  ·         cancelled',
  failing:
    '  recovered   finalized   ·          ·         ·         ·          ·  ·  ·         cancelled',
  ...FINAL,
};
/** "Not found" has been confirmed for the whole grace period. */
const CONFIRMED_FOR_GRACE: Table = {
  ...WITHIN_GRACE,
  tracking:
    ' (pending)   finalized   failing    unknown   unknown   rejected   ·  ·  ·         cancelled',
};
const AT_DEADLINE: Table = {
  tracking:
    ' expired     finalized   failed     expired   expired   rejected   ·  ·  ·         cancelled',
  pending:
    '  expired     finalized   failed     ·         ·         ·          ·  ·  ·         cancelled',
  failing:
    '  expired     finalized   failed     ·         ·         ·          ·  ·  ·         cancelled',
  ...FINAL,
};
const BEFORE_FAILURE_LIMIT: Table = {
  tracking:
    ' expired     finalized   failed     expired   expired   rejected   ·  ·  expired   cancelled',
  pending:
    '  expired     finalized   failed     expired   expired   expired    ·  ·  expired   cancelled',
  failing:
    '  expired     finalized   failed     failed    failed    failed     ·  ·  failed    cancelled',
  ...FINAL,
};
/** During an outage of the upstream no time limit passes. */
const WHILE_OUT = {
  tracking: WITHIN_GRACE.tracking,
  pending: WITHIN_GRACE.pending,
  failing: WITHIN_GRACE.failing,
};

const ONE_RESPONSE = { notFoundMs: 0 };
const CONFIRMED = { notFoundMs: 120_000 };

describe.each<[string, Partial<Table>, number, Partial<Submission>, { upstreamUp: boolean }]>([
  ['within the grace period', WITHIN_GRACE, 999, ONE_RESPONSE, { upstreamUp: true }],
  [
    'after the grace period, "not found" not confirmed',
    WITHIN_GRACE,
    1_000,
    ONE_RESPONSE,
    { upstreamUp: true },
  ],
  [
    '"not found" confirmed for the grace period',
    CONFIRMED_FOR_GRACE,
    1_000,
    CONFIRMED,
    { upstreamUp: true },
  ],
  ['just before the deadline', CONFIRMED_FOR_GRACE, DEADLINE - 1, CONFIRMED, { upstreamUp: true }],
  ['at the deadline', AT_DEADLINE, DEADLINE, ONE_RESPONSE, { upstreamUp: true }],
  [
    'at the deadline, "not found" confirmed',
    AT_DEADLINE,
    DEADLINE,
    CONFIRMED,
    { upstreamUp: true },
  ],
  [
    'just before the limit of failures after the deadline',
    AT_DEADLINE,
    FAILURE_LIMIT - 1,
    ONE_RESPONSE,
    { upstreamUp: true },
  ],
  [
    'after the limit of failures after the deadline',
    BEFORE_FAILURE_LIMIT,
    FAILURE_LIMIT,
    ONE_RESPONSE,
    { upstreamUp: true },
  ],
  [
    'the same during an outage of the upstream',
    WHILE_OUT,
    FAILURE_LIMIT,
    ONE_RESPONSE,
    { upstreamUp: false },
  ],
])('%s', (_name, table, at, fields, { upstreamUp }) => {
  it.each(Object.entries(table) as [Status, string][])('%s', (status, row) => {
    const results = INPUTS.map((name) =>
      transition(
        of(status, { ...FAILING_SINCE_DEADLINE, ...fields }),
        input(name, at),
        context({ upstreamUp }),
      ),
    );
    expect(results.map(cell)).toEqual(row.trim().split(/\s{2,}/));
    for (const [column, { change, watched }] of results.entries()) {
      const after = change?.status ?? status;
      const isFinal = FINAL_STATUSES.some((final) => final === after);
      if (!isFinal) expect(watched, INPUTS[column]).toBe(true);
      else if (change) expect(watched, INPUTS[column]).toBe(false);
    }
  });
});

describe('past the deadline, without a response about this id', () => {
  const late = 10 * FAILURE_LIMIT;
  const failsAt = (before: Submission, name: (typeof INPUTS)[number], at: number) => {
    const result = transition(before, input(name, at), context());
    return { transitionResult: result, after: applied(before, result, at) };
  };

  it('the first failure ends nothing, however late it comes and whatever responses preceded it', () => {
    for (const polledAt of [null, 5, DEADLINE, late - 1]) {
      const { transitionResult: result } = failsAt(
        of('pending', { polledAt }),
        'unavailable',
        late,
      );
      expect(result).toMatchObject({ change: null, watched: true, noResponseSince: late });
    }
  });

  it('five minutes of failures end the submission; a 429 or a refused key in between has no effect', () => {
    let { after } = failsAt(of('pending'), 'unavailable', late);
    ({ after } = failsAt(after, 'throttled', late + 1_000));
    ({ after } = failsAt(after, 'unauthorized', late + 2_000));
    expect(failsAt(after, 'unavailable', late + 299_999).transitionResult.change).toBeNull();
    expect(cell(failsAt(after, 'unavailable', late + 300_000).transitionResult)).toBe('expired');
  });

  it('time without polls is not part of the five minutes', () => {
    const { after } = failsAt(of('pending'), 'unavailable', late);
    const restarted = late + 3_600_000;
    const at = (ms: number) =>
      transition(
        after,
        input('unavailable', restarted + ms),
        context({ pollableSince: restarted }),
      );
    expect(at(299_999).change).toBeNull();
    expect(cell(at(300_000))).toBe('expired');
  });
});

describe('a change takes over', () => {
  it('the state, error and response of the input that caused it', () => {
    const { change } = transition(of('pending'), observation('error', 10), context());
    const { state, error, envelope } = VERDICTS.error;
    expect(change).toEqual({
      status: 'failing',
      upstreamState: state,
      error,
      envelope,
      chain: null,
      event: 'submission.failing',
    });
  });

  it('the last state of the upstream if the input contains nothing about the submission', () => {
    const before = of('failing', FAILING_SINCE_DEADLINE);
    for (const name of ['cancel', 'unavailable'] as const) {
      const { change } = transition(before, input(name, FAILURE_LIMIT), context());
      expect(change).toMatchObject({
        upstreamState: 'Error',
        error: 'TIMEOUT',
        envelope: before.envelope,
      });
    }
    const unseen = transition(of('tracking'), observation('rejected', 10), context());
    expect(unseen.change).toMatchObject({
      error: 'invalid character',
      upstreamState: null,
      envelope: null,
    });
  });

  it('a different payload, state or reason without an event', () => {
    const { pending, error } = VERDICTS;
    const withBlock = {
      ...pending,
      envelope: pending.envelope.replace('"block_number":null', '"block_number":5'),
    };
    const notes = [
      transition(of('pending'), observation(withBlock, 10), context()),
      transition(of('pending'), observation({ ...pending, state: 'Queued' }, 10), context()),
      transition(of('failing'), observation({ ...error, error: 'other' }, 10), context()),
    ];
    expect(notes.map(cell)).toEqual(['(pending)', '(pending)', '(failing)']);
  });

  it('nothing if only unknown fields or the spelling of a time differ', () => {
    const envelope = VERDICTS.pending.envelope.replace('123456"', '123Z","retries":7');
    expect(envelope).not.toBe(VERDICTS.pending.envelope);
    expect(
      cell(
        transition(of('pending'), observation({ ...VERDICTS.pending, envelope }, 10), context()),
      ),
    ).toBe('·');
  });
});

describe('after finality', () => {
  const recheck = context({ recheck: true });
  const settled = of('finalized', { watched: true });

  it('after a correction it is polled until it reads Finalized again, or until its deadline', () => {
    const first = transition(settled, observation('error', 10), recheck);
    expect(first.watched).toBe(true);
    const errored = applied(settled, first, 10);
    expect(transition(errored, observation('error', 20), recheck)).toMatchObject({
      change: null,
      watched: true,
    });
    const back = transition(errored, observation('finalized', 20), recheck);
    expect([cell(back), back.watched]).toEqual(['corrected', false]);
    expect(transition(errored, observation('error', DEADLINE), recheck).watched).toBe(false);
  });

  it('other hashes are reported as a correction, and replace the old ones', () => {
    const envelope = JSON.stringify(finalEnvelope({ block_hash: '0xb2', tx_hash: '0xa2' }));
    const result = transition(
      settled,
      observation({ ...VERDICTS.finalized, envelope }, 10),
      recheck,
    );
    expect(cell(result)).toBe('corrected');
    expect(result).toMatchObject({ change: { envelope }, watched: false });
  });
});

describe('a retrack', () => {
  const AGAIN: readonly Status[] = ['failed', 'unknown', 'rejected', 'expired', 'cancelled'];

  it.each(STATUSES)('of a submission that is %s', (status) => {
    const before = of(status, {
      noResponseSince: 1,
      notFoundMs: 2,
      notFoundSince: 3,
      watched: !AGAIN.includes(status),
    });
    const result = transition(before, { kind: 'retrack', at: FAILURE_LIMIT }, context());
    const unchanged = {
      noResponseSince: 1,
      notFoundMs: 2,
      notFoundSince: 3,
      watched: before.watched,
      change: null,
    };
    const change = {
      status: 'tracking',
      upstreamState: null,
      error: null,
      envelope: null,
      chain: null,
      event: 'submission.retracked',
    };
    const begun = {
      noResponseSince: null,
      notFoundMs: null,
      notFoundSince: null,
      watched: true,
      change,
    };
    expect(result).toEqual({
      becameStuck: false,
      becameContradicted: false,
      ...(AGAIN.includes(status) ? begun : unchanged),
    });
  });
});

describe('notFoundSince', () => {
  it('is the time of the first response "not found" after the newest one that found the submission', () => {
    let current = submission({ deadlineAt: 1e9, stuckAt: 1e9 });
    const sinceAfter = (name: VerdictName, at: number) => {
      current = applied(current, transition(current, observation(name, at), context()), at);
      return current.notFoundSince;
    };
    expect(sinceAfter('unavailable', 5)).toBeNull();
    expect(sinceAfter('not_found', 10)).toBe(10);
    expect(sinceAfter('unavailable', 15)).toBe(10);
    expect(sinceAfter('not_found_500', 20)).toBe(10);
    expect(sinceAfter('pending', 30)).toBeNull();
    expect(sinceAfter('not_found', 40)).toBe(40);
    expect(sinceAfter('finalized', 50)).toBeNull();
  });
});

describe('the verdict of the chain', () => {
  const verdict = (chain: ChainResult) => observation({ ...VERDICTS.finalized, chain }, 10);
  const CONFIRMED = { verdict: 'confirmed', reason: null } as const;
  const CONTRADICTED = { verdict: 'contradicted', reason: 'another hash' } as const;
  const UNAVAILABLE = { verdict: 'unavailable', reason: 'no node' } as const;
  const finalized = (chain: ChainResult | null) => ({
    ...of('finalized'),
    ...{ chain: chain?.verdict ?? null, chainReason: chain?.reason ?? null },
  });

  it('is recorded without an event if the data did not change', () => {
    const { change } = transition(finalized(UNAVAILABLE), verdict(CONFIRMED), context());
    expect(change).toMatchObject({ chain: CONFIRMED, event: null });
  });

  it('stays while the node cannot tell, or is not asked', () => {
    for (const before of [CONFIRMED, CONTRADICTED]) {
      const later = [verdict(UNAVAILABLE), observation('finalized', 10)];
      for (const input of later)
        expect(transition(finalized(before), input, context()).change).toBeNull();
    }
  });

  it('is a contradiction once, and the submission is polled until its deadline', () => {
    const first = transition(of('pending'), verdict(CONTRADICTED), context());
    expect(first).toMatchObject({ becameContradicted: true, watched: true });
    const next = transition(finalized(CONTRADICTED), verdict(CONTRADICTED), context());
    expect(next).toMatchObject({ change: null, becameContradicted: false, watched: true });
    const over = context({ upstreamUp: true });
    const late = { ...verdict(CONTRADICTED), at: Number.MAX_SAFE_INTEGER };
    expect(transition(finalized(CONTRADICTED), late, over).watched).toBe(false);
  });

  it('is a contradiction again if the data have changed', () => {
    const envelope = JSON.stringify(finalEnvelope({ block_hash: '0xother' }));
    const other = { ...verdict(CONTRADICTED), envelope } as Observation;
    const result = transition(finalized(CONTRADICTED), other, context());
    expect(result).toMatchObject({
      becameContradicted: true,
      change: { event: 'submission.corrected' },
    });
  });
});
