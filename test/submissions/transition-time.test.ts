import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isFinal, type Status, type Submission } from '../../src/submissions/submission.ts';
import {
  type TransitionContext,
  type TransitionResult,
  transition,
} from '../../src/submissions/transition.ts';
import {
  applied,
  context,
  LEGAL,
  observation,
  submission,
  VERDICTS,
  type VerdictName,
} from '../support/ledger/domain.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/**
 * Polls a submission that is never found at these times, and returns its status after each poll.
 */
function polledAt(
  times: readonly number[],
  given: Partial<Submission> = {},
  fields: (at: number) => Partial<TransitionContext> = () => ({}),
): Status[] {
  let current = submission({ graceEndsAt: 15 * MINUTE, deadlineAt: 24 * HOUR, ...given });
  return times.map((at) => {
    current = applied(
      current,
      transition(current, observation('not_found_500', at), context(fields(at))),
      at,
    );
    return current.status;
  });
}

const every = (stepMs: number, untilMs: number) =>
  Array.from({ length: untilMs / stepMs + 1 }, (_, i) => i * stepMs);
const endOf = (statuses: readonly Status[]) => statuses.indexOf('unknown');

describe('"not found"', () => {
  it('begins a new series after an outage', () => {
    const outage = (at: number) => ({ upSince: at < HOUR ? Number.NEGATIVE_INFINITY : HOUR });
    const times = [0, HOUR, HOUR + 14 * MINUTE, HOUR + 15 * MINUTE];
    expect(endOf(polledAt(times, {}, outage))).toBe(3);
  });

  it('that is ambiguous counts if the upstream has proved since the last one that its database works', () => {
    const times = every(MINUTE, HOUR);
    const provenAt = (ms: number) => () => ({ provenAt: ms });
    expect(endOf(polledAt(times, {}, provenAt(14 * MINUTE - 1)))).toBe(-1);
    expect(endOf(polledAt(times, {}, provenAt(14 * MINUTE)))).toBe(15);
    const before = submission({ graceEndsAt: MINUTE, notFoundSince: 0, polledAt: HOUR });
    const result = (name: VerdictName) =>
      transition(before, observation(name, 2 * HOUR), context({ provenAt: 0 }));
    const late = { deadlineAt: 24 * HOUR };
    Object.assign(before, late);
    expect(result('not_found_500')).toMatchObject({ change: null, needsProof: true });
    expect(result('not_found').change?.status, 'a 404').toBe('unknown');
  });
});

describe('the deadline', () => {
  it('changes nothing of an ended submission, nor its recheck', () => {
    const final = submission({ status: 'finalized', watched: true });
    expect(
      transition(final, { kind: 'deadline', at: 10_000, reason: '' }, context()),
    ).toMatchObject({
      change: null,
      watched: true,
    });
  });
});

describe('a submission that is open for too long', () => {
  it('is reported as stuck once, whatever the response, without a status change', () => {
    const named = (name: VerdictName) =>
      transition(submission({ status: 'pending' }), observation(name, 2_000), context());
    for (const name of ['unavailable', 'throttled', 'unauthorized', 'not_found', 'error'] as const)
      expect(named(name).becameStuck, name).toBe(true);
    expect(named('unavailable').change).toBeNull();

    const reported = submission({ status: 'pending', stuck: true });
    expect(transition(reported, observation('unavailable', 3_000), context()).becameStuck).toBe(
      false,
    );
  });

  it('is not reported as stuck before its time, nor if the same response ends it', () => {
    expect(transition(submission(), observation('error', 1_999), context()).becameStuck).toBe(
      false,
    );
    expect(transition(submission(), observation('finalized', 5_000), context()).becameStuck).toBe(
      false,
    );
    expect(transition(submission(), { kind: 'cancel', at: 5_000 }, context()).becameStuck).toBe(
      false,
    );
    const final = submission({ status: 'finalized', envelope: VERDICTS.finalized.envelope });
    expect(transition(final, observation('error', 5_000), context()).becameStuck).toBe(false);
  });
});

type Step = {
  name: VerdictName | 'cancel';
  afterMs: number;
  recheck: boolean;
};
const step: fc.Arbitrary<Step> = fc.record({
  name: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...(Object.keys(VERDICTS) as VerdictName[])) },
    { weight: 1, arbitrary: fc.constant('cancel' as const) },
  ),
  afterMs: fc.oneof(fc.integer({ min: 0, max: 900 }), fc.integer({ min: 0, max: 400_000 })),
  recheck: fc.boolean(),
});

function play(
  steps: readonly Step[],
): { before: Submission; result: TransitionResult; after: Submission }[] {
  let now = 0;
  let current = submission();
  return steps.map(({ name, afterMs, recheck }) => {
    now += afterMs;
    const input = name === 'cancel' ? { kind: name, at: now } : observation(name, now);
    const before = current;
    const result = transition(before, input, context({ recheck }));
    current = applied(before, result, now);
    return { before, result, after: current };
  });
}

describe('any sequence of inputs', () => {
  it('produces a chain of legal transitions that never leaves a final status, and reports "stuck" and every end once', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25, size: 'max' }), (steps) => {
        const reported: string[] = [];
        for (const { before, result, after } of play(steps)) {
          if (result.change) expect(LEGAL[before.status]).toContain(result.change.status);
          if (isFinal(before.status)) expect(after.status).toBe(before.status);
          if (isFinal(after.status) && after.status !== 'finalized')
            expect(after.watched).toBe(false);
          if (!isFinal(after.status)) expect(after.watched).toBe(true);
          if (result.becameStuck) reported.push('stuck');
          if (after.status !== before.status && isFinal(after.status)) reported.push('end');
        }
        expect(new Set(reported).size).toBe(reported.length);
      }),
      { numRuns: 1_500 },
    );
  });
});
