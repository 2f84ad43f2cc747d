import { describe, expect, it } from 'vitest';
import type { Status, Submission } from '../../src/submissions/submission.ts';
import { type TransitionContext, transition } from '../../src/submissions/transition.ts';
import {
  applied,
  context,
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

const endOf = (statuses: readonly Status[]) => statuses.indexOf('unknown');

describe('"not found"', () => {
  it('begins a new series after an outage', () => {
    const outage = (at: number) => ({ upSince: at < HOUR ? Number.NEGATIVE_INFINITY : HOUR });
    const times = [0, HOUR, HOUR + 14 * MINUTE, HOUR + 15 * MINUTE];
    expect(endOf(polledAt(times, {}, outage))).toBe(3);
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
