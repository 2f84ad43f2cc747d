import { expect, it } from 'vitest';
import { LedgerUnavailableError } from '../../src/ledger/errors.ts';
import type { TrackResult } from '../../src/submissions/ports.ts';
import type { TrackRequest } from '../../src/submissions/submission.ts';
import { countEffects, type TrackingSteps, trackInParts } from '../../src/submissions/tracker.ts';
import type { Ledger } from '../../src/wiring/ledger-stores.ts';
import { openLedger, trackRequest, trackRequests } from '../support/ledger/ledger-file.ts';

const NOW = 1_000;

/** Returns the steps of a request at a ledger. */
function stepsAt(ledger: Ledger, requests: readonly TrackRequest[]): TrackingSteps {
  const watcher = {
    refusalOf: (all: readonly TrackRequest[]) => ledger.refusalOf(all, NOW),
    track: (part: readonly TrackRequest[]) => ledger.track(part, NOW),
  };
  return trackInParts(watcher, requests);
}

/** Takes all steps; returns the numbers of ids that they committed, and the result. */
function end(steps: TrackingSteps): { committed: number[]; result: TrackResult } {
  const committed: number[] = [];
  for (;;) {
    const { done, value } = steps.next();
    if (done) return { committed, result: value };
    committed.push(value);
  }
}

const stored = (ledger: Ledger) => ledger.stats.counts(0).submissions.tracking;

it.each<[string, (ledger: Ledger) => void, Partial<TrackRequest>, object]>([
  [
    'of another upstream',
    (ledger) => ledger.track([trackRequest('last', { upstream: 'other' })], 0),
    {},
    { kind: 'conflict', index: 2_400 },
  ],
  [
    'with a deadline that has passed',
    () => undefined,
    { deadlineAt: NOW },
    { kind: 'late', index: 2_400 },
  ],
])(
  'refuses a large request as a whole because of one submission %s',
  (_, prepare, last, refusal) => {
    const ledger = openLedger();
    ledger.upstream('other');
    prepare(ledger);
    const before = stored(ledger);
    const { committed, result } = end(
      stepsAt(ledger, [...trackRequests(2_400), trackRequest('last', last)]),
    );
    expect([committed, stored(ledger)]).toEqual([[], before]);
    expect(result).toMatchObject(refusal);
    expect(result).not.toHaveProperty('stored');
  },
);

it('reports how much is stored if another request takes an id in between', () => {
  const ledger = openLedger();
  ledger.upstream('other');
  const conflict = stepsAt(ledger, [...trackRequests(1_200), trackRequest('last')]);
  for (const committed of [0, 1_000]) expect(conflict.next().value).toBe(committed);
  ledger.track([trackRequest('last', { upstream: 'other' })], NOW);
  expect(conflict.next().value).toMatchObject({ kind: 'conflict', index: 1_200, stored: 1_000 });
});

it('reports how much is stored if the ledger cannot be written any more, and continues when it is repeated', () => {
  const ledger = openLedger();
  const requests = trackRequests(2_500);
  let commits = 0;
  const watcher = {
    refusalOf: () => undefined,
    track(part: readonly TrackRequest[]) {
      if (++commits === 2) throw new LedgerUnavailableError('the disk is full');
      return ledger.track(part, NOW);
    },
  };
  expect(() => end(trackInParts(watcher, requests))).toThrow(
    expect.objectContaining({ stored: 1_000 }),
  );
  const { result } = end(stepsAt(ledger, requests));
  if (result.kind !== 'tracked') return expect.fail(result.kind);
  expect(countEffects(result.submissions)).toMatchObject({
    accepted: 1_500,
    already_tracked: 1_000,
  });
});
