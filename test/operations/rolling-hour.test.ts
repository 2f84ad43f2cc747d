import { expect, it } from 'vitest';
import type { Counters } from '../../src/operations/metrics/counters.ts';
import { HOUR_MS, RollingHour, startLiveStats } from '../../src/operations/metrics/rolling-hour.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, trackRequest } from '../support/ledger/ledger-file.ts';

const MINUTE_MS = 60_000;
const NOON = 1_760_000_400_000;
const about = (s: number) =>
  expect.toSatisfy((actual: number) => Math.abs(actual / s - 1) < 0.05, `about ${s}`);
const ESTIMATED = { lagMs: 1_000, source: 'estimate' as const };
const found = (
  at: number,
  fields: { timeToFinalityMs?: number; detection?: typeof ESTIMATED; polls?: number } = {},
) => ({
  at,
  timeToFinalityMs: 50_000,
  detection: { lagMs: 500, source: 'chain' as const },
  polls: 2,
  ...fields,
});

it('keeps each minute separate, and the total', () => {
  const hour = new RollingHour(NOON);
  hour.addFinalized(found(NOON, { timeToFinalityMs: 40_000, polls: 1 }));
  hour.addFinalized(
    found(NOON + MINUTE_MS - 1, { timeToFinalityMs: 60_000, detection: ESTIMATED, polls: 3 }),
  );
  hour.addFinalized(found(NOON + MINUTE_MS, { timeToFinalityMs: 12_000 }));
  const minutes = hour.minutes(NOON + MINUTE_MS);
  expect(minutes.map(({ finalized }) => finalized)).toEqual([...Array(58).fill(0), 2, 1]);
  expect(minutes[58]).toMatchObject({
    at: new Date(NOON).toISOString(),
    time_to_finality_p50_s: about(40),
    time_to_finality_p99_s: about(60),
    detection_lag_p50_s: about(0.5),
    detection_lag_p99_s: about(1),
  });
  // In steps of five seconds: 8, 12 and 3.
  expect(hour.hour(NOON + MINUTE_MS)).toMatchObject({
    finalized: 3,
    time_to_finality_s: { mean: about(37.3), p50: about(40), p99: about(60) },
    detection_lag_s: { count: 3, from_chain: 2, mean: about(0.67), p99: about(1) },
    polls_per_submission: 2,
    fixed_5s_polls_per_submission: 7.67,
  });
});

it('an hour later, minutes are of the hour before, also if nothing was added since', () => {
  const hour = new RollingHour(NOON);
  hour.addFinalized(found(NOON));
  hour.addPoll(NOON);
  const last = NOON + 59 * MINUTE_MS;
  expect(hour.minutes(last)[0]).toMatchObject({
    at: new Date(NOON).toISOString(),
    finalized: 1,
    polls: 1,
  });
  expect(hour.hour(last).finalized).toBe(1);
  expect(
    hour.minutes(last + MINUTE_MS).some(({ finalized, polls }) => finalized > 0 || polls !== 0),
  ).toBe(false);
  expect(hour.hour(last + MINUTE_MS)).toEqual({
    ...{ finalized: 0, time_to_finality_s: null, detection_lag_s: null },
    ...{ polls_per_submission: null, fixed_5s_polls_per_submission: null },
  });
  expect(hour.hour(last + MINUTE_MS - HOUR_MS).finalized).toBe(1);
  hour.addFinalized(found(last + MINUTE_MS));
  expect(hour.minutes(last + MINUTE_MS).map(({ finalized }) => finalized)).toEqual([
    ...Array(59).fill(0),
    1,
  ]);
});

it('returns null polls for the time before it began, and 0 for a minute without polls', () => {
  const hour = new RollingHour(NOON + 30_000);
  hour.addPoll(NOON + 40_000);
  expect(hour.minutes(NOON + 2 * MINUTE_MS).map(({ polls }) => polls)).toEqual([
    ...Array(57).fill(null),
    1,
    0,
    0,
  ]);
});

it('counts the lag of an import that was already final from its import, also after a restart', () => {
  const ledger = openLedger();
  const at = NOON + 1_000;
  const limits = { deadlineAt: 2 * NOON, graceEndsAt: 2 * NOON, stuckAt: 2 * NOON };
  ledger.track([trackRequest('import', { ...limits, trackedAt: NOON - 2 * HOUR_MS })], NOON);
  const final = observation('finalized', at, 'import');
  const finalityAt = NOON - HOUR_MS;
  ledger.record(
    [final],
    context(),
    new Map([[final, { detection: { finalityAt, source: 'chain', lagMs: 1_000 } }]]),
  );
  const { hour } = startLiveStats({ stats: ledger.stats, now: at, counters: {} as Counters });
  expect(hour.hour(at)).toMatchObject({
    time_to_finality_s: { p50: about(7_201) },
    detection_lag_s: { p50: about(1) },
  });
});

it('counts again at once when a clock that was a day ahead is corrected', () => {
  const hour = new RollingHour(NOON);
  for (let minute = 0; minute < 180; minute += 1)
    hour.addFinalized(found(NOON + 24 * HOUR_MS + minute * MINUTE_MS));
  hour.addFinalized(found(NOON));
  hour.addFinalized(found(NOON));
  expect(hour.hour(NOON).finalized).toBe(2);
});
