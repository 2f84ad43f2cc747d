import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isFinal, type Status, type Submission } from '../../src/monitor/submission.ts';
import { type Input, type Outcome, type TransitionContext, transition } from '../../src/monitor/transition.ts';
import { applied, context, observation, submission, VERDICTS, type VerdictName } from '../support/domain.ts';
import { LEGAL } from '../support/legal.ts';

const HOUR = 3_600_000;

function statusAfter(before: Submission, input: Input, fields: Partial<TransitionContext> = {}): Status {
  return transition(before, input, context(fields)).change?.status ?? before.status;
}

describe('an outage moves every time limit by its length', () => {
  const out = { outageMs: HOUR };

  it('the grace', () => {
    expect(statusAfter(submission(), observation('not_found', HOUR + 999), out)).toBe('tracking');
    expect(statusAfter(submission(), observation('not_found', HOUR + 1_000), out)).toBe('unknown');
  });

  it('the deadline', () => {
    const before = submission({ status: 'pending' });
    expect(statusAfter(before, observation('pending', HOUR + 9_999), out)).toBe('pending');
    expect(statusAfter(before, observation('pending', HOUR + 10_000), out)).toBe('expired');
  });

  it('the time from which it is stuck', () => {
    const stuckAt = (at: number) => transition(submission(), observation('pending', at), context(out)).becameStuck;
    expect(stuckAt(HOUR + 1_999)).toBe(false);
    expect(stuckAt(HOUR + 2_000)).toBe(true);
  });

  it('but not an outage that was over before tracking began', () => {
    const later = submission({ outageMsBefore: HOUR });
    expect(statusAfter(later, observation('not_found', 999), out)).toBe('tracking');
    expect(statusAfter(later, observation('not_found', 1_000), out)).toBe('unknown');
    expect(statusAfter(later, observation('not_found', 1_000), { outageMs: HOUR + 1 })).toBe('tracking');
  });
});

describe('the deadline', () => {
  it('ends an unseen submission as unknown even where the grace is longer', () => {
    const before = submission({ graceEndsAt: 20_000 });
    expect(statusAfter(before, observation('not_found', 9_999))).toBe('tracking');
    expect(statusAfter(before, observation('not_found', 10_000))).toBe('unknown');
  });

  it('never takes away a Finalized that comes late', () => {
    for (const status of ['tracking', 'pending', 'failing'] as const)
      expect(statusAfter(submission({ status }), observation('finalized', 100 * HOUR))).toBe('finalized');
  });
});

describe('a submission that is open for too long', () => {
  it('is told to be stuck once, whatever the answer, without a change of its own', () => {
    const named = (name: VerdictName) =>
      transition(submission({ status: 'pending' }), observation(name, 2_000), context());
    for (const name of ['unavailable', 'throttled', 'unauthorized', 'not_found', 'error'] as const)
      expect(named(name).becameStuck, name).toBe(true);
    expect(named('unavailable').change).toBeNull();

    const told = submission({ status: 'pending', stuck: true });
    expect(transition(told, observation('unavailable', 3_000), context()).becameStuck).toBe(false);
  });

  it('is not told to be stuck before its time, nor when the same answer ends it', () => {
    expect(transition(submission(), observation('error', 1_999), context()).becameStuck).toBe(false);
    expect(transition(submission(), observation('finalized', 5_000), context()).becameStuck).toBe(false);
    expect(transition(submission(), { kind: 'cancel', at: 5_000 }, context()).becameStuck).toBe(false);
    const final = submission({ status: 'finalized', answer: VERDICTS.finalized.answer });
    expect(transition(final, observation('error', 5_000), context()).becameStuck).toBe(false);
  });
});

type Step = { name: VerdictName | 'cancel'; afterMs: number; outMs: number; upstreamUp: boolean; recheck: boolean };
const step: fc.Arbitrary<Step> = fc.record({
  name: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...(Object.keys(VERDICTS) as VerdictName[])) },
    { weight: 1, arbitrary: fc.constant('cancel' as const) },
  ),
  afterMs: fc.oneof(fc.integer({ min: 0, max: 900 }), fc.integer({ min: 0, max: 400_000 })),
  outMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5_000 })),
  upstreamUp: fc.boolean(),
  recheck: fc.boolean(),
});

function play(steps: readonly Step[]): { before: Submission; outcome: Outcome; after: Submission }[] {
  let now = 0;
  let outageMs = 0;
  let current = submission();
  return steps.map(({ name, afterMs, outMs, upstreamUp, recheck }) => {
    now += afterMs;
    outageMs += outMs;
    const input = name === 'cancel' ? { kind: name, at: now } : observation(name, now);
    const before = current;
    const outcome = transition(before, input, context({ outageMs, upstreamUp, recheck }));
    current = applied(before, outcome, now);
    return { before, outcome, after: current };
  });
}

describe('any sequence of inputs', () => {
  it('is a chain of legal transitions that never leaves a final status and tells "stuck" and every end once', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25, size: 'max' }), (steps) => {
        const told: string[] = [];
        for (const { before, outcome, after } of play(steps)) {
          if (outcome.change) expect(LEGAL[before.status]).toContain(outcome.change.status);
          if (isFinal(before.status)) expect(after.status).toBe(before.status);
          if (isFinal(after.status) && after.status !== 'finalized') expect(after.watched).toBe(false);
          if (!isFinal(after.status)) expect(after.watched).toBe(true);
          if (outcome.becameStuck) told.push('stuck');
          if (after.status !== before.status && isFinal(after.status)) told.push('end');
        }
        expect(new Set(told).size).toBe(told.length);
      }),
      { numRuns: 1_500 },
    );
  });

  it('has the same result when it is played again', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 15, size: 'max' }), (steps) => {
        expect(play(steps)).toEqual(play(steps));
      }),
      { numRuns: 200 },
    );
  });

  it('changes nothing when the same answer comes twice at the same moment', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 15, size: 'max' }), (steps) => {
        const last = steps.at(-1);
        if (!last) return;
        const twice = play([...steps, { ...last, afterMs: 0, outMs: 0 }]).at(-1);
        expect(twice?.outcome.change).toBeNull();
        expect(twice?.outcome.becameStuck).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});
