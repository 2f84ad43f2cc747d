import { expect, it } from 'vitest';
import { burnRate } from '../../src/submissions/objective.ts';
import { context, observation, type VerdictName } from '../support/ledger/domain.ts';
import { openLedger, trackRequest } from '../support/ledger/ledger-file.ts';
import { withReports } from '../support/ledger/report-ledger.ts';

type ReportLedger = ReturnType<typeof withReports<ReturnType<typeof openLedger>>>;

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const NOW = 1_000 * DAY_MS;
const objective = { target: 0.99, withinMs: 2 * MINUTE_MS };

function track(ledger: ReportLedger, ids: readonly string[], at = NOW, upstream = 'default') {
  ledger.upstream(upstream);
  const far = { deadlineAt: at + DAY_MS, graceEndsAt: at + DAY_MS, stuckAt: at + DAY_MS };
  ledger.track(
    ids.map((id) => trackRequest(id, { ...far, upstream })),
    at,
  );
}

function observe(ledger: ReportLedger, kind: VerdictName, at: number, ...ids: string[]) {
  ledger.record(
    ids.map((id) => observation(kind, at, id)),
    { ...context(), now: at },
  );
}

function countsOf(ledger: ReportLedger, now: number, upstream = 'default', limit = 100) {
  while (ledger.objectives.count({ upstream, objective, now, limit }));
  return ledger.objectives.sum({ upstream, from: 0, until: Number.MAX_SAFE_INTEGER });
}

it('judges a submission when its time is over, whether it has ended or not', () => {
  const ledger = withReports(openLedger());
  track(ledger, ['early', 'open', 'late']);
  observe(ledger, 'finalized', NOW + MINUTE_MS, 'early');
  expect(countsOf(ledger, NOW + 2 * MINUTE_MS - 1)).toEqual({ good: 0, bad: 0 });
  expect(countsOf(ledger, NOW + 2 * MINUTE_MS)).toEqual({ good: 1, bad: 2 });
  observe(ledger, 'finalized', NOW + 3 * MINUTE_MS, 'late', 'open');
  expect(countsOf(ledger, NOW + 10 * MINUTE_MS)).toEqual({ good: 1, bad: 2 });
});

it('does not count cancelled submissions and ids that the upstream rejects or does not have', () => {
  const ledger = withReports(openLedger());
  track(ledger, ['cancelled', 'rejected', 'absent', 'not polled', 'error']);
  ledger.cancel(['cancelled'], NOW + 1);
  observe(ledger, 'rejected', NOW + 1, 'rejected');
  observe(ledger, 'not_found', NOW + 1, 'absent');
  observe(ledger, 'error', NOW + 1, 'error');
  expect(countsOf(ledger, NOW + 5 * MINUTE_MS)).toEqual({ good: 0, bad: 2 });
});

it('counts each submission once, in whatever steps, per upstream, and also after a restart', () => {
  const first = withReports(openLedger());
  track(first, ['a', 'b', 'c', 'd', 'e']);
  track(first, ['x', 'y'], NOW, 'other');
  observe(first, 'finalized', NOW + 1, 'a', 'c', 'x');
  first.objectives.count({ upstream: 'default', objective, now: NOW + 5 * MINUTE_MS, limit: 2 });
  first.close();
  const second = withReports(openLedger({ file: first.file }));
  expect(countsOf(second, NOW + 5 * MINUTE_MS, 'default', 2)).toEqual({ good: 2, bad: 3 });
  expect(countsOf(second, NOW + 5 * MINUTE_MS, 'other', 3)).toEqual({ good: 1, bad: 1 });
  expect(countsOf(second, NOW + 6 * MINUTE_MS, 'unknown')).toEqual({ good: 0, bad: 0 });
});

it('a submission that was tracked by a clock that was ahead does not delay the others', () => {
  const ledger = withReports(openLedger());
  track(ledger, ['ahead'], NOW + 10 * DAY_MS);
  track(ledger, ['a']);
  expect(countsOf(ledger, NOW + 5 * MINUTE_MS)).toEqual({ good: 0, bad: 1 });
});

it('reports burn rates by window, and the budget of 30 days', () => {
  const ledger = withReports(openLedger());
  for (const [id, ago] of [
    ['old', 40 * DAY_MS],
    ['days', 2 * DAY_MS],
    ['hours', 3 * 60 * MINUTE_MS],
    ['now', 2 * MINUTE_MS],
  ] as const)
    track(ledger, [id], NOW - ago);
  observe(ledger, 'finalized', NOW - 3 * 60 * MINUTE_MS + 1, 'hours');
  countsOf(ledger, NOW);
  const [status, ...more] = ledger.objectives.status(new Map([['default', objective]]), NOW);
  expect(more).toEqual([]);
  expect(status).toMatchObject({
    budget: { good: 1, bad: 2 },
    windows: {
      '5m': { good: 0, bad: 1 },
      '1h': { good: 0, bad: 1 },
      '6h': { good: 1, bad: 1 },
      '3d': { good: 1, bad: 2 },
    },
  });
  expect(status && burnRate(status.windows['6h'], objective)).toBeCloseTo(50);
});

it('keeps slices for 400 days', () => {
  const ledger = withReports(openLedger());
  for (const daysAgo of [401, 399, 1]) track(ledger, [`s${daysAgo}`], NOW - daysAgo * DAY_MS);
  countsOf(ledger, NOW);
  while (ledger.objectives.prune('default', NOW, 1));
  expect(ledger.objectives.sum({ upstream: 'default', from: 0, until: NOW })).toEqual({
    good: 0,
    bad: 2,
  });
  const days = { upstream: 'default', from: NOW - 2 * DAY_MS, until: NOW, unitMs: DAY_MS };
  expect(ledger.objectives.byPeriod(days)).toEqual([{ start: NOW - DAY_MS, good: 0, bad: 1 }]);
});
