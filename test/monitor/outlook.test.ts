import { describe, expect, it } from 'vitest';
import { cohortPacing } from '../../src/monitor/cohort-policy.ts';
import { Pacer } from '../../src/monitor/pacer.ts';
import { observation, VERDICTS } from '../support/domain.ts';
import { learnedBy } from '../support/learned.ts';

const NOW = 1_760_000_000_000;
const RECHECK_MS = 3_600_000;

/** Submissions tracked at NOW, by default of an upstream whose clock is known. */
function pacerOf(ids: string[], options: { learned?: boolean; ceilingMs?: number; requests?: number } = {}): Pacer {
  const { learned = true, ceilingMs = 60_000, requests = 100 } = options;
  const pacer = new Pacer({
    settings: {
      budget: { requests, perMs: 10_000, concurrency: 50 },
      breaker: { failures: 1, probeMs: 1_000, maxProbeMs: 30_000 },
      leaseMs: 30_000,
      recheckMs: RECHECK_MS,
    },
    policy: cohortPacing({ minIntervalMs: 1_000, maxIntervalMs: ceilingMs }),
    random: () => 0.5,
  });
  if (learned) pacer.recall(learnedBy(NOW));
  for (const submissionId of ids) pacer.add({ submissionId, trackedAt: NOW, seen: false }, NOW);
  return pacer;
}

/** Asks what is due when the next one is, and gives every one of them this answer at once. */
function askNext(pacer: Pacer, ...[verdict]: [Parameters<typeof observation>[0]]): number {
  const at = pacer.wakeAt();
  for (const id of pacer.next(at)) pacer.observe(observation(verdict, at, id), true, at);
  return at;
}

const final = { ...VERDICTS.finalized, blockNumber: 22 };

describe('the next question goes', () => {
  it('to the first in line at the first block that it is old enough for', () => {
    const next = pacerOf(['a', 'b', 'c', 'd', 'e']).outlook(NOW).next;
    expect(next).toMatchObject({ submissionId: 'a', reason: 'scout', heldBy: null });
    expect(Math.abs((next?.at ?? 0) - (NOW + 40_000))).toBeLessThan(1_000);
  });

  it('to its neighbours when it is final, those first that are no scouts as well', () => {
    const pacer = pacerOf(['a', 'b', 'c', 'd', 'e']);
    const at = askNext(pacer, final);
    expect(pacer.outlook(at).next).toEqual({ submissionId: 'b', at, reason: 'sweep', heldBy: null });
  });

  it('to a failing one at the next block, by itself', () => {
    const pacer = pacerOf(['a']);
    const at = askNext(pacer, 'error');
    const next = pacer.outlook(at).next;
    expect(next).toMatchObject({ submissionId: 'a', reason: 'alone' });
    expect(Math.abs((next?.at ?? 0) - (at + 20_000))).toBeLessThan(2_000);
  });

  it('to one that would be left alone for too long', () => {
    expect(pacerOf(['a'], { ceilingMs: 10_000 }).outlook(NOW).next).toMatchObject({ reason: 'net' });
  });

  it('by age where no clock is known', () => {
    expect(pacerOf(['a'], { learned: false }).outlook(NOW).next).toMatchObject({ at: NOW, reason: 'age' });
  });

  it('to one that is final, to look at it once more', () => {
    const pacer = pacerOf(['a']);
    const at = askNext(pacer, final);
    expect(pacer.outlook(at).next).toMatchObject({ reason: 'recheck', at: at + RECHECK_MS });
  });

  it('to whatever finds out that an outage is over', () => {
    const pacer = pacerOf(['a', 'b'], { learned: false });
    pacer.observe(observation('unavailable', NOW, pacer.next(NOW, 1)[0]), true, NOW);
    expect(pacer.outlook(NOW).next).toMatchObject({ reason: 'probe', at: pacer.breaker.probeAt });
  });

  it('nowhere, where nothing is tracked', () => {
    expect(pacerOf([]).outlook(NOW)).toMatchObject({ next: null, description: { mode: 'cohorts', inLine: 0 } });
  });
});

describe('it is held back', () => {
  it('by a budget that is spent: until an answer, and then until its place is free', () => {
    const pacer = pacerOf(['a', 'b'], { learned: false, requests: 1 });
    expect(pacer.next(NOW)).toEqual(['a']);
    const { budget, next } = pacer.outlook(NOW);
    expect(budget).toEqual({ requests: 1, perMs: 10_000, concurrency: 50, used: 1 });
    expect(next).toMatchObject({ submissionId: 'b', at: null, heldBy: 'budget' });
    pacer.observe(observation('pending', NOW + 50, 'a'), true, NOW + 50);
    expect(pacer.outlook(NOW + 50).next).toMatchObject({ submissionId: 'b', at: NOW + 10_050, heldBy: 'budget' });
    expect(pacer.outlook(NOW + 10_050)).toMatchObject({ budget: { used: 0 }, next: { heldBy: null } });
  });

  it('by an upstream that wants no requests', () => {
    const pacer = pacerOf(['a', 'b'], { learned: false });
    const throttled = { ...VERDICTS.throttled, retryAfterMs: 7_000 };
    pacer.observe(observation(throttled, NOW, pacer.next(NOW, 1)[0]), true, NOW);
    expect(pacer.outlook(NOW).next).toMatchObject({ submissionId: 'b', at: NOW + 7_000, heldBy: 'pause' });
  });
});
