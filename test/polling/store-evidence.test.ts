import { describe, expect, it } from 'vitest';
import { StoreEvidence } from '../../src/polling/time-limits.ts';
import { observation, VERDICTS, type VerdictName } from '../support/ledger/domain.ts';

const MINUTE = 60_000;

/**
 * Observations in order: a classification, its time, and whether the upstream had returned that
 * submission before.
 */
function evidenceOf(
  ...observed: [VerdictName, number, { seen?: boolean; id?: string }?][]
): StoreEvidence {
  const evidence = new StoreEvidence();
  for (const [name, at, { seen = false, id = 'a' } = {}] of observed)
    evidence.observe(observation(name, at, id), seen);
  return evidence;
}

/** Returns whether a "not found" at this time is accepted as evidence. */
function believes(evidence: StoreEvidence, at: number): boolean {
  const { since, until } = evidence.trust(at);
  return at >= since && at <= until;
}

describe('"not found" is accepted as evidence', () => {
  it.each(['pending', 'finalized', 'error', 'not_found'] as const)(
    'for six minutes after %s',
    (name) => {
      const evidence = evidenceOf(['pending', 0], [name, 10 * MINUTE]);
      expect(evidence.trust(10 * MINUTE).share).toBe(1);
      expect(believes(evidence, 10 * MINUTE - 1), 'the silence before it lasted too long').toBe(
        false,
      );
      expect(believes(evidence, 16 * MINUTE)).toBe(true);
      expect(believes(evidence, 16 * MINUTE + 1)).toBe(false);
    },
  );

  it.each(['not_found_500', 'rejected', 'throttled', 'unauthorized', 'unavailable'] as const)(
    'not because of %s, which a failing store may also return',
    (name) => {
      expect(believes(evidenceOf(['pending', 0], [name, 10 * MINUTE]), 10 * MINUTE + 1)).toBe(
        false,
      );
    },
  );

  it('no longer after trouble: no response, a 5xx, or "Record not found" for a submission seen before', () => {
    const shown = evidenceOf(['pending', 0], ['not_found_500', MINUTE, { id: 'a' }]);
    const seen = evidenceOf(['pending', 0], ['not_found_500', MINUTE, { id: 'b', seen: true }]);
    const silent = evidenceOf(['pending', 0], ['unavailable', MINUTE, { id: 'b' }]);
    for (const evidence of [shown, seen, silent])
      expect(believes(evidence, MINUTE + 1)).toBe(false);
    const refused = evidenceOf(['pending', 0]);
    refused.observe(
      observation({ ...VERDICTS.unavailable, reason: 'refused' }, MINUTE, 'odd'),
      false,
    );
    refused.observe(observation('not_found_500', MINUTE, 'new'), false);
    expect(believes(refused, MINUTE + 1), 'a response about one request or one new id').toBe(true);
  });

  it.each(['unavailable', 'not_found_500'] as const)(
    'also while one submission alone always gets %s, from the first good response after it on',
    (failure) => {
      const bad = { id: 'bad', seen: true };
      const evidence = evidenceOf(
        ['pending', 0],
        [failure, MINUTE, bad],
        ['pending', 3 * MINUTE],
        [failure, 4 * MINUTE, bad],
        ['pending', 6 * MINUTE],
        [failure, 7 * MINUTE, bad],
      );
      expect(evidence.trust(8 * MINUTE)).toMatchObject({ since: 3 * MINUTE, share: 1 });
      expect(believes(evidence, 8 * MINUTE)).toBe(true);
      evidence.observe(observation('pending', 9 * MINUTE, 'bad'), true);
      evidence.observe(observation(failure, 10 * MINUTE, 'bad'), true);
      expect(believes(evidence, 11 * MINUTE), 'it failed anew').toBe(false);
    },
  );

  it('again after trouble: from before it if it lasted less than a minute, from its end if it lasted longer', () => {
    const brief = evidenceOf(
      ['pending', 0],
      ['unavailable', MINUTE],
      ['unavailable', 2 * MINUTE - 1],
      ['pending', 2 * MINUTE],
    );
    expect(brief.trust(2 * MINUTE).since).toBe(0);
    const long = evidenceOf(['pending', 0], ['unavailable', MINUTE], ['pending', 3 * MINUTE]);
    expect(long.trust(3 * MINUTE).since).toBe(3 * MINUTE);
  });

  it('for a quarter of the time since the last trouble, if the upstream has never returned a submission', () => {
    expect(evidenceOf().trust(MINUTE)).toEqual({
      since: Number.NEGATIVE_INFINITY,
      until: Number.POSITIVE_INFINITY,
      share: 0.25,
    });
    expect(evidenceOf(['unavailable', 7]).trust(MINUTE)).toMatchObject({ since: 7, share: 0.25 });
  });
});

it('a proof is required if the last one is older than a minute, and after trouble', () => {
  const evidence = evidenceOf(['pending', 0]);
  expect([evidence.needsProof(MINUTE), evidence.needsProof(MINUTE + 1)]).toEqual([false, true]);
  evidence.observe(observation('unavailable', 5, 'a'), true);
  expect(evidence.needsProof(6)).toBe(true);
});
