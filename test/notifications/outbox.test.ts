import { describe, expect, it } from 'vitest';
import type { TrackRequest } from '../../src/submissions/submission.ts';
import { context, observation, type VerdictName } from '../support/ledger/domain.ts';
import { type Ledger, openLedger, outboxOf, trackRequest } from '../support/ledger/ledger-file.ts';

/** Records responses in order, 10 ms apart. */
function ledgerAfter(names: readonly VerdictName[], limits: Partial<TrackRequest> = {}): Ledger {
  const ledger = openLedger();
  ledger.track([trackRequest('s', limits)], 0);
  for (const [index, name] of names.entries())
    ledger.record([observation(name, 10 * (index + 1), 's')], context());
  return ledger;
}

function eventsOf(ledger: Ledger): [string, number, number | null][] {
  return outboxOf(ledger.file).map(({ type, at, version }) => [
    type.replace('submission.', ''),
    at,
    version,
  ]);
}

describe('one event per reported change', () => {
  it.each<[string, VerdictName[], [string, number, number | null][]]>([
    [
      'nothing for a submission that only waits',
      ['not_found', 'pending', 'pending', 'throttled', 'unavailable'],
      [],
    ],
    ['a finalization, once', ['pending', 'finalized', 'finalized'], [['finalized', 20, 3]]],
    [
      'an error that recovers',
      ['error', 'finalized'],
      [
        ['failing', 10, 2],
        ['finalized', 20, 3],
      ],
    ],
  ])('%s', (_name, verdicts, expected) => {
    expect(eventsOf(ledgerAfter(verdicts))).toEqual(expected);
  });

  it.each<[string, VerdictName[], Partial<TrackRequest>, [string, number, number | null][]]>([
    [
      'still an error at the deadline',
      ['error', 'error'],
      { deadlineAt: 15 },
      [
        ['failing', 10, 2],
        ['failed', 20, 3],
      ],
    ],
    [
      'stuck, once, before it recovers',
      ['pending', 'pending', 'pending', 'finalized'],
      { stuckAt: 15 },
      [
        ['stuck', 20, 2],
        ['finalized', 40, 3],
      ],
    ],
    [
      'stuck and failing because of one response',
      ['error'],
      { stuckAt: 5 },
      [
        ['failing', 10, 2],
        ['stuck', 10, 2],
      ],
    ],
  ])('%s', (_name, verdicts, limits, expected) => {
    expect(eventsOf(ledgerAfter(verdicts, limits))).toEqual(expected);
  });

  it('a submission that is not found for its grace period', () => {
    const ledger = ledgerAfter(['not_found'], { graceEndsAt: 15 });
    ledger.record([observation('not_found', 24, 's')], context());
    expect(eventsOf(ledger)).toEqual([]);
    ledger.record([observation('not_found', 25, 's')], context());
    expect(eventsOf(ledger)).toEqual([['unknown', 25, 2]]);
  });

  it('a submission stays stuck over a restart without a second event', () => {
    const ledger = ledgerAfter(['pending'], { stuckAt: 5 });
    expect(ledger.submissions.get('s')).toMatchObject({ stuck: true, status: 'pending' });
    ledger.close();
    const again = openLedger({ file: ledger.file });
    again.record([observation('pending', 99, 's')], context());
    expect(eventsOf(again)).toEqual([['stuck', 10, 2]]);
  });
});
