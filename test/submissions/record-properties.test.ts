import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Observation } from '../../src/submissions/classify.ts';
import { isFinal } from '../../src/submissions/submission.ts';
import type { Ledger } from '../../src/wiring/ledger-stores.ts';
import { context, observation, VERDICTS, type VerdictName } from '../support/ledger/domain.ts';
import { historyOf } from '../support/ledger/histories.ts';
import {
  integrityOf,
  isUnbroken,
  openLedger,
  outboxOf,
  trackRequest,
} from '../support/ledger/ledger-file.ts';

const IDS = ['s0', 's1', 's2'];
const LIMITS = { graceEndsAt: 1_000, stuckAt: 2_000, deadlineAt: 10_000 };
const NAMES = Object.keys(VERDICTS) as VerdictName[];

const arbitraryObservation = fc
  .record({
    name: fc.constantFrom(...NAMES),
    at: fc.nat(20_000),
    id: fc.constantFrom(...IDS, 'untracked'),
  })
  .map(({ name, at, id }) => observation(name, at, id));

/**
 * Observations in their order of arrival, mostly in the order of time, and the sizes of the
 * batches.
 */
const arrivals = fc.record({
  observations: fc
    .tuple(fc.array(arbitraryObservation, { maxLength: 30 }), fc.boolean())
    .map(([all, sorted]) => (sorted ? all.sort((a, b) => a.at - b.at) : all)),
  sizes: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1 }),
  recheck: fc.boolean(),
});

function recordAll(
  observations: readonly Observation[],
  sizes: readonly number[],
  recheck: boolean,
): Ledger {
  const ledger = openLedger();
  ledger.track(
    IDS.map((id) => trackRequest(id, { ...LIMITS, metadata: { id } })),
    0,
  );
  for (let from = 0, turn = 0; from < observations.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    ledger.record(observations.slice(from, from + size), context({ recheck }));
    from += size;
  }
  return ledger;
}

/** Returns all rows without the random ids of events. */
function contents(ledger: Ledger) {
  return {
    submissions: IDS.map((id) => ledger.submissions.get(id)),
    histories: IDS.map((id) => historyOf(ledger, id)),
    events: outboxOf(ledger.file).map(({ id, ...event }) => event),
  };
}

it('the result does not depend on how observations are split into batches', () => {
  fc.assert(
    fc.property(arrivals, ({ observations, sizes, recheck }) => {
      const oneByOne = recordAll(observations, [1], recheck);
      const inBatches = recordAll(observations, sizes, recheck);
      expect(contents(inBatches)).toEqual(contents(oneByOne));
      for (const id of IDS) {
        const history = historyOf(inBatches, id);
        expect(isUnbroken(history)).toBe(true);
        expect(inBatches.submissions.getWithHistory(id)?.submission).toEqual(
          inBatches.submissions.get(id),
        );
        const statuses = history.map(({ status }) => status);
        const final = statuses.findIndex((status) => isFinal(status));
        if (final >= 0) expect(new Set(statuses.slice(final)).size).toBe(1);
        expect(inBatches.submissions.get(id)?.polls).toBe(
          observations.filter(({ submissionId }) => submissionId === id).length,
        );
      }
      expect(integrityOf(inBatches.file)).toBe('ok');
      oneByOne.close();
      inBatches.close();
    }),
    { numRuns: 40 },
  );
});
