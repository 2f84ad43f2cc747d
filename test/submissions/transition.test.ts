import { describe, expect, it } from 'vitest';
import type { Observation } from '../../src/submissions/classify.ts';
import {
  type ChainResult,
  FINAL_STATUSES,
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

const INPUTS = [...(Object.keys(VERDICTS) as VerdictName[]), 'cancel', 'deadline'] as const;
const STATUS_OF_EVENT: Record<string, Status> = { recovered: 'pending', corrected: 'finalized' };
const DEADLINE = submission().deadlineAt;

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
  if (name === 'cancel') return { kind: 'cancel', at };
  return name === 'deadline' ? { kind: name, at, reason: 'no answer' } : observation(name, at);
}

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
 * throttled, unavailable, cancel, deadline without an answer.
 */
type Table = Record<Status, string>;
const NOTHING =
  '·           ·           ·          ·         ·         ·          ·  ·  ·         ·   ·';
const FINAL = {
  finalized:
    'corrected   ·           corrected  ·         ·         ·          ·  ·  ·         ·   ·',
  failed: NOTHING,
  unknown: NOTHING,
  rejected: NOTHING,
  expired: NOTHING,
  cancelled: NOTHING,
};
const WITHIN_GRACE: Table = {
  tracking:
    ' (pending)   finalized   failing    ·         ·         rejected   ·  ·  ·         cancelled   ·',
  pending:
    '  ·           finalized   failing    ·         ·         ·          ·  ·  ·         cancelled   ·',
  failing:
    '  recovered   finalized   ·          ·         ·         ·          ·  ·  ·         cancelled   ·',
  ...FINAL,
};
const VANISHED = {
  finalized:
    'corrected   ·           corrected  corrected  corrected  ·          ·  ·  ·         ·   ·',
};
/** The first "not found" is as old as the grace period. */
const NOT_FOUND_FOR_GRACE: Table = {
  ...WITHIN_GRACE,
  tracking:
    ' (pending)   finalized   failing    unknown   unknown   rejected   ·  ·  ·         cancelled   ·',
  ...VANISHED,
};
const AT_DEADLINE: Table = {
  tracking:
    ' expired     finalized   failed     expired   expired   rejected   ·  ·  ·         cancelled   expired',
  pending:
    '  expired     finalized   failed     ·         ·         ·          ·  ·  ·         cancelled   expired',
  failing:
    '  expired     finalized   failed     ·         ·         ·          ·  ·  ·         cancelled   failed',
  ...FINAL,
};
const SINCE_0 = { notFoundSince: 0 };
const GRACE = 180_000;
const END = 10 * GRACE;

describe.each<[string, Partial<Table>, number, Partial<Submission>]>([
  ['within the grace period', WITHIN_GRACE, GRACE - 1, SINCE_0],
  ['after the grace period, at the first "not found"', WITHIN_GRACE, GRACE, {}],
  ['"not found" for the grace period', NOT_FOUND_FOR_GRACE, GRACE, SINCE_0],
  ['just before the deadline', NOT_FOUND_FOR_GRACE, END - 1, SINCE_0],
  ['at the deadline', AT_DEADLINE, END, {}],
  [
    'at the deadline, "not found" for the grace period',
    { ...AT_DEADLINE, ...VANISHED },
    END,
    SINCE_0,
  ],
])('%s', (_name, table, at, fields) => {
  it.each(Object.entries(table) as [Status, string][])('%s', (status, row) => {
    const limits = { graceEndsAt: GRACE, deadlineAt: END };
    const results = INPUTS.map((name) =>
      transition(of(status, { ...limits, ...fields }), input(name, at), context()),
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
    const before = of('failing');
    for (const name of ['cancel', 'deadline'] as const) {
      const { change } = transition(before, input(name, DEADLINE), context());
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
  const finalized = (chain: ChainResult) =>
    of('finalized', { chain: chain.verdict, chainReason: chain.reason });

  it('stays while the node cannot tell, or is not asked', () => {
    for (const before of [CONFIRMED, CONTRADICTED]) {
      const later = [verdict(UNAVAILABLE), observation('finalized', 10)];
      for (const input of later)
        expect(transition(finalized(before), input, context()).change).toBeNull();
    }
  });

  it('is a contradiction once', () => {
    const first = transition(of('pending'), verdict(CONTRADICTED), context());
    expect(first).toMatchObject({ becameContradicted: true, watched: false });
    const next = transition(finalized(CONTRADICTED), verdict(CONTRADICTED), context());
    expect(next).toMatchObject({ change: null, becameContradicted: false });
  });

  it('holds a submission that requires it, until it confirms or the deadline passes', () => {
    const held = { ...verdict(CONTRADICTED), isHeld: true } as Observation;
    const first = transition(of('tracking'), held, context());
    expect(first).toMatchObject({ change: { status: 'pending', event: null }, watched: true });
    const open = applied(of('tracking'), first, 10);
    const verified = (chain: ChainResult | null, isHeld: boolean) =>
      transition(open, { kind: 'verified', at: 20, chain, isHeld }, context());
    expect(verified(UNAVAILABLE, true)).toMatchObject({ change: null, watched: true });
    const end = { change: { status: 'finalized', event: 'submission.finalized' }, watched: false };
    expect(verified(CONFIRMED, false)).toMatchObject(end);
    // Verification was turned off.
    expect(verified(null, false)).toMatchObject(end);
    expect(transition(open, { ...held, at: DEADLINE }, context())).toMatchObject({
      change: { status: 'expired', chain: CONTRADICTED },
    });
  });

  it('ends when the upstream no longer reports an open submission as final', () => {
    const held = { ...verdict(UNAVAILABLE), isHeld: true } as Observation;
    const open = applied(of('tracking'), transition(of('tracking'), held, context()), 10);
    const { envelope } = held as Extract<Observation, { envelope: string }>;
    const back = transition(open, observation({ ...VERDICTS.pending, envelope }, 20), context());
    expect(back).toMatchObject({ change: { status: 'pending', chain: null }, watched: true });
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
