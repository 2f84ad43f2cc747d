import { expect, it } from 'vitest';
import { burnRate } from '../../src/submissions/objective.ts';
import { context, observation, type VerdictName } from '../support/ledger/domain.ts';
import { openLedger as openPlainLedger, trackRequest } from '../support/ledger/ledger-file.ts';
import { openMaintenance } from '../support/ledger/maintenance.ts';
import { withReports } from '../support/ledger/report-ledger.ts';

const openLedger = (settings: Parameters<typeof withReports>[1] = {}) =>
  withReports(openPlainLedger(), settings);
type ReportLedger = ReturnType<typeof openLedger>;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
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
  while (ledger.reports.objectives.count({ upstream, objective, now, limit }));
  return ledger.reports.objectives.sum({ upstream, from: 0, until: Number.MAX_SAFE_INTEGER });
}

it('judges a submission when its time is over, whether it has ended or not', () => {
  const ledger = openLedger();
  track(ledger, ['early', 'open', 'late']);
  observe(ledger, 'finalized', NOW + MINUTE_MS, 'early');
  expect(countsOf(ledger, NOW + 2 * MINUTE_MS - 1)).toEqual({ good: 0, bad: 0 });
  expect(countsOf(ledger, NOW + 2 * MINUTE_MS)).toEqual({ good: 1, bad: 2 });
  observe(ledger, 'finalized', NOW + 3 * MINUTE_MS, 'late', 'open');
  expect(countsOf(ledger, NOW + 10 * MINUTE_MS)).toEqual({ good: 1, bad: 2 });
});

it('the maintenance judges what has ended before it deletes it', async () => {
  const objectives = new Map([['default', { target: 0.99, withinMs: 3 * HOUR_MS }]]);
  const ledger = openLedger({ objectives });
  track(ledger, ['a', 'b', 'c', 'late'], 0);
  observe(ledger, 'finalized', 1, 'a', 'b', 'c');
  const { clock, errors } = openMaintenance(ledger, { submissions: 0 }, 0, (clock) => [
    { run: () => ledger.reports.maintain(() => clock.now()), minAgeMs: ledger.reports.minAgeMs },
  ]);
  await clock.advance(3 * HOUR_MS + 5 * MINUTE_MS);
  expect(ledger.reports.objectiveStatus(clock.now())).toMatchObject([
    { budget: { good: 3, bad: 1 } },
  ]);
  expect(ledger.stats.counts(0).submissions).toMatchObject({ finalized: 0, tracking: 1 });
  expect(errors).toEqual([]);
});

it('does not count cancelled submissions and ids that the upstream rejects or does not have', () => {
  const ledger = openLedger();
  track(ledger, ['cancelled', 'rejected', 'absent', 'not polled', 'error']);
  ledger.cancel(['cancelled'], NOW + 1);
  observe(ledger, 'rejected', NOW + 1, 'rejected');
  observe(ledger, 'not_found', NOW + 1, 'absent');
  observe(ledger, 'error', NOW + 1, 'error');
  expect(countsOf(ledger, NOW + 5 * MINUTE_MS)).toEqual({ good: 0, bad: 2 });
});

it('counts each submission once, in whatever steps, per upstream, and also after a restart', () => {
  const first = openLedger();
  track(first, ['a', 'b', 'c', 'd', 'e']);
  track(first, ['x', 'y'], NOW, 'other');
  observe(first, 'finalized', NOW + 1, 'a', 'c', 'x');
  first.reports.objectives.count({
    upstream: 'default',
    objective,
    now: NOW + 5 * MINUTE_MS,
    limit: 2,
  });
  first.close();
  const second = withReports(openPlainLedger({ file: first.file }));
  expect(countsOf(second, NOW + 5 * MINUTE_MS, 'default', 2)).toEqual({ good: 2, bad: 3 });
  expect(countsOf(second, NOW + 5 * MINUTE_MS, 'other', 3)).toEqual({ good: 1, bad: 1 });
  expect(countsOf(second, NOW + 6 * MINUTE_MS, 'unknown')).toEqual({ good: 0, bad: 0 });
});

it('a submission that was tracked by a clock that was ahead does not delay the others', () => {
  const ledger = openLedger();
  track(ledger, ['ahead'], NOW + 10 * DAY_MS);
  track(ledger, ['a']);
  expect(countsOf(ledger, NOW + 5 * MINUTE_MS)).toEqual({ good: 0, bad: 1 });
});

it('reports burn rates by window, and the budget of 30 days', () => {
  const ledger = openLedger();
  for (const [id, ago] of [
    ['old', 40 * DAY_MS],
    ['days', 2 * DAY_MS],
    ['hours', 3 * 60 * MINUTE_MS],
    ['now', 2 * MINUTE_MS],
  ] as const)
    track(ledger, [id], NOW - ago);
  observe(ledger, 'finalized', NOW - 3 * 60 * MINUTE_MS + 1, 'hours');
  countsOf(ledger, NOW);
  const [status, ...more] = ledger.reports.objectives.status(
    new Map([['default', objective]]),
    NOW,
  );
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
