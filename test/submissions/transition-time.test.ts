import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isFinal, type Status, type Submission } from '../../src/submissions/submission.ts';
import {
  FULL_TRUST,
  type NotFoundTrust,
  type TransitionContext,
  type TransitionInput,
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

function statusAfter(
  before: Submission,
  input: TransitionInput,
  fields: Partial<TransitionContext> = {},
): Status {
  return transition(before, input, context(fields)).change?.status ?? before.status;
}

describe('an outage moves every time limit by its length', () => {
  const out = { outageMs: HOUR };

  it('the deadline', () => {
    const before = submission({ status: 'pending' });
    expect(statusAfter(before, observation('pending', HOUR + 9_999), out)).toBe('pending');
    expect(statusAfter(before, observation('pending', HOUR + 10_000), out)).toBe('expired');
  });

  it('the time from which it is stuck', () => {
    const stuckAt = (at: number) =>
      transition(submission(), observation('pending', at), context(out)).becameStuck;
    expect(stuckAt(HOUR + 1_999)).toBe(false);
    expect(stuckAt(HOUR + 2_000)).toBe(true);
  });

  it('unless the outage ended before tracking began', () => {
    const later = submission({ status: 'pending', outageMsBefore: HOUR });
    expect(statusAfter(later, observation('pending', 9_999), out)).toBe('pending');
    expect(statusAfter(later, observation('pending', 10_000), out)).toBe('expired');
    expect(statusAfter(later, observation('pending', 10_000), { outageMs: HOUR + 1 })).toBe(
      'pending',
    );
  });
});

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
  it('ends a submission once responses have confirmed it for the whole grace period', () => {
    const statuses = polledAt(every(MINUTE, 20 * MINUTE));
    expect(endOf(statuses)).toBe(15);
  });

  it('has no effect once, however long after the grace period it arrives', () => {
    for (const at of [15 * MINUTE, HOUR, 23 * HOUR]) {
      expect(polledAt([at])).toEqual(['tracking']);
      expect(polledAt([at], { polledAt: at - MINUTE })).toEqual(['tracking']);
    }
  });

  it('counts at most five minutes per interval: a longer one is not caused by the pacing', () => {
    expect(endOf(polledAt(every(5 * MINUTE, HOUR)))).toBe(3);
    expect(endOf(polledAt(every(HOUR, 10 * HOUR)))).toBe(3);
  });

  it('counts from when polls could be sent again: a restart, a pause or an outage is not part of the grace period', () => {
    const restarts = every(10_000, 4 * HOUR);
    const startedAt = (at: number) => ({
      pollableSince: Math.floor(at / MINUTE) * MINUTE + 55_000,
    });
    expect(endOf(polledAt(restarts, {}, startedAt)), 'polled for 5 s of each minute').toBe(-1);
    const times = [0, 5 * MINUTE, 10 * MINUTE, HOUR, HOUR + 4 * MINUTE, HOUR + 5 * MINUTE];
    const restarted = (at: number) => ({ pollableSince: at < HOUR ? 0 : HOUR });
    expect(endOf(polledAt(times, {}, restarted))).toBe(5);
  });

  it('counts nothing during an outage of the upstream', () => {
    expect(endOf(polledAt(every(MINUTE, 2 * HOUR), {}, () => ({ upstreamUp: false })))).toBe(-1);
    const statuses = polledAt([0, 30 * MINUTE, 31 * MINUTE], {}, (at) => ({
      upstreamUp: at < MINUTE,
    }));
    expect(endOf(statuses)).toBe(-1);
  });

  it('counts only while it is accepted as evidence, and only with its weight', () => {
    const believed = (notFoundTrust: Partial<NotFoundTrust>) => () => ({
      notFoundTrust: { ...FULL_TRUST, ...notFoundTrust },
    });
    const minutes = every(MINUTE, 3 * HOUR);
    expect(endOf(polledAt(minutes, {}, believed({ until: Number.NEGATIVE_INFINITY })))).toBe(-1);
    expect(endOf(polledAt(minutes, {}, believed({ until: 14 * MINUTE })))).toBe(-1);
    expect(endOf(polledAt(minutes, {}, believed({ since: HOUR })))).toBe(75);
    expect(endOf(polledAt(minutes, {}, believed({ share: 1 / 4 })))).toBe(60);
  });
});

describe('the deadline', () => {
  const limits = { graceEndsAt: HOUR, deadlineAt: 10 * MINUTE };
  const expiry = (statuses: readonly Status[]) => statuses.indexOf('expired');

  it('ends an unseen submission as expired, even if the grace period is longer', () => {
    expect(expiry(polledAt(every(MINUTE, HOUR), limits))).toBe(10);
    expect(expiry(polledAt([20 * MINUTE], limits))).toBe(0);
  });

  it('that passed while nothing was polled is decided by five minutes of responses that are not accepted', () => {
    const never = () => ({ notFoundTrust: { ...FULL_TRUST, until: Number.NEGATIVE_INFINITY } });
    expect(expiry(polledAt(every(MINUTE, HOUR), limits, never))).toBe(15);
  });

  it.each([
    ['tracking', 'expired'],
    ['pending', 'expired'],
    ['failing', 'failed'],
  ] as const)('ends %s as %s without a response', (status, ended) => {
    const input = { kind: 'deadline', at: 10_000 } as const;
    expect(statusAfter(submission({ status }), input)).toBe(ended);
  });

  it('changes nothing of an ended submission, nor its recheck', () => {
    const final = submission({ status: 'finalized', watched: true });
    expect(transition(final, { kind: 'deadline', at: 10_000 }, context())).toMatchObject({
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
  outMs: number;
  upstreamUp: boolean;
  recheck: boolean;
};
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

function play(
  steps: readonly Step[],
): { before: Submission; result: TransitionResult; after: Submission }[] {
  let now = 0;
  let outageMs = 0;
  let current = submission();
  return steps.map(({ name, afterMs, outMs, upstreamUp, recheck }) => {
    now += afterMs;
    outageMs += outMs;
    const input = name === 'cancel' ? { kind: name, at: now } : observation(name, now);
    const before = current;
    const result = transition(before, input, context({ outageMs, upstreamUp, recheck }));
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
