import { describe, expect, it } from 'vitest';
import { SERVER } from '../../src/lib/actor.ts';
import type { DueDelivery, NewWebhook } from '../../src/notifications/delivery.ts';
import type { TrackRequest } from '../../src/submissions/submission.ts';
import { context, historyOf, observation } from '../support/ledger/domain.ts';
import {
  allSubmissions,
  integrityOf,
  type Ledger,
  openLedger,
  rawConnection,
  trackRequest,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { HOUR_MS, openMaintenance } from '../support/ledger/maintenance.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * HOUR_MS;
const HOOK = {
  url: 'https://hook.example',
  types: ['submission.*'],
  metadata: null,
  description: '',
  enabled: true,
} satisfies NewWebhook;

const idsOf = (ledger: Ledger) =>
  allSubmissions(ledger)
    .map(({ submissionId }) => submissionId)
    .toSorted();

/** Adds submissions tracked at 0 and final at `at`, one millisecond apart. */
function finalize(
  ledger: Ledger,
  count: number,
  at = 0,
  prefix = 's',
  more: Partial<TrackRequest> = {},
): void {
  const requests = trackRequests(count, prefix).map((request) => ({ ...request, ...more }));
  ledger.track(requests, 0);
  ledger.record(
    requests.map(({ submissionId }, index) => observation('finalized', at + index, submissionId)),
    context(),
  );
}

function addHook(ledger: Ledger, types: readonly string[] = HOOK.types): string {
  const hook = { ...HOOK, types: [...types] };
  return ledger.webhooks.create(hook, 'whsec_c2VjcmV0', 0).id;
}

function dueDeliveries(
  ledger: Ledger,
): (Pick<DueDelivery, 'id' | 'attempts'> & { destination: string })[] {
  const query = { now: Number.MAX_SAFE_INTEGER, limit: 100_000, except: new Set<number>() };
  return ledger.deliveries
    .destinations()
    .flatMap((destination) =>
      ledger.deliveries.due(destination, query).map((due) => ({ ...due, destination })),
    );
}

/** Sets the states of the waiting deliveries. */
function settle(ledger: Ledger, stateOf: (index: number) => 'delivered' | 'dead' | 'waits'): void {
  for (const [index, due] of dueDeliveries(ledger).entries()) {
    const state = stateOf(index);
    if (state === 'waits') continue;
    const next =
      state === 'delivered'
        ? { kind: 'delivered' }
        : { kind: 'dead', reason: 'attempts_exhausted' };
    const attempt = { at: 0, durationMs: 1, httpStatus: 200, error: null, response: null };
    const { id: deliveryId, destination, attempts } = due;
    const address = ledger.webhooks.url(destination.replace('webhook:', ''));
    ledger.deliveries.recordResults([
      { deliveryId, destination, attempts, address, attempt, next } as never,
    ]);
  }
}

describe('by age', () => {
  it('deletes old final submissions with their data, and nothing else', async () => {
    const ledger = openLedger();
    addHook(ledger);
    finalize(ledger, 50, 0, 's');
    ledger.track(trackRequests(3, 'open'), 0);
    ledger.record([observation('error', 1, 'open0')], context());
    ledger.track([trackRequest('rechecked')], 0);
    ledger.record([observation('finalized', 1, 'rechecked')], context({ recheck: true }));
    finalize(ledger, 2, 10 * HOUR_MS, 'later');
    settle(ledger, () => 'delivered');
    expect(ledger.stats.counts().submissions).toMatchObject({ finalized: 53 });
    const { clock, pruned, errors } = openMaintenance(
      ledger,
      { submissionsMs: 8 * HOUR_MS },
      7 * HOUR_MS,
    );
    await clock.advance(HOUR_MS - MINUTE_MS);
    expect(pruned).toEqual([]);
    await clock.advance(6 * MINUTE_MS);
    const kept = ['later0', 'later1', 'open0', 'open1', 'open2', 'rechecked'];
    expect(idsOf(ledger)).toEqual(kept);
    expect(pruned).toEqual([{ submissions: 50, events: 0, deliveries: 0 }]);
    expect(ledger.stats.counts().submissions).toMatchObject({
      finalized: 3,
      tracking: 2,
      failing: 1,
    });
    expect(historyOf(ledger, 's7')).toEqual([]);
    expect(ledger.events.after(0, 1_000).map(({ type }) => type)).toEqual([
      'submission.failing',
      'submission.finalized',
      'submission.finalized',
      'submission.finalized',
    ]);
    expect(ledger.deliveries.list({ limit: 1_000 }).deliveries).toHaveLength(4);
    const rowsOf = (table: string) =>
      rawConnection(ledger.file).prepare(`SELECT count(*) FROM ${table}`).pluck().get();
    expect(rowsOf('attempts')).toBe(4);
    expect(integrityOf(ledger.file)).toBe('ok');
    expect(errors).toEqual([]);
  });

  it('deletes nothing without a limit, and never what ended within the last hour', async () => {
    const forever = openLedger();
    finalize(forever, 5);
    const kept = openMaintenance(forever, {}, 1_000 * DAY_MS);
    await kept.clock.advance(5 * MINUTE_MS);
    expect(idsOf(forever)).toHaveLength(5);
    const ledger = openLedger();
    finalize(ledger, 5);
    const { clock } = openMaintenance(ledger, { submissionsMs: 1 });
    await clock.advance(HOUR_MS - 2 * MINUTE_MS);
    expect(idsOf(ledger)).toHaveLength(5);
    await clock.advance(4 * MINUTE_MS);
    expect(idsOf(ledger)).toEqual(['s4']);
  });
});

describe('a waiting delivery', () => {
  it('keeps its submission until it is delivered, and a dead letter until it is pruned', async () => {
    const ledger = openLedger();
    addHook(ledger);
    finalize(ledger, 3);
    ledger.track([trackRequest('newest')], 0);
    const states = ['delivered', 'waits', 'dead'] as const;
    settle(ledger, (index) => states[index] ?? 'waits');
    const { clock } = openMaintenance(
      ledger,
      { submissionsMs: HOUR_MS, deliveriesMs: DAY_MS },
      3 * HOUR_MS,
    );
    await clock.advance(2 * MINUTE_MS);
    expect(idsOf(ledger)).toEqual(['newest', 's1', 's2']);
    settle(ledger, () => 'delivered');
    await clock.advance(2 * MINUTE_MS);
    expect(idsOf(ledger)).toEqual(['newest', 's2']);
    expect(ledger.deliveries.replay(3, clock.now())).toBe('waiting');
    clock.skip(2 * DAY_MS);
    await clock.advance(2 * MINUTE_MS);
    expect(idsOf(ledger)).toEqual(['newest', 's2']);
    settle(ledger, () => 'dead');
    await clock.advance(2 * MINUTE_MS);
    expect(idsOf(ledger)).toEqual(['newest']);
  });
});

function changeUpstream(ledger: Ledger, at: number): void {
  ledger.recordUpstream({
    upstream: 'default',
    at,
    event: 'upstream.up',
    reason: 'HTTP 503',
    lastedMs: 0,
    record: { state: 'up', outSince: null },
  });
}

describe('events', () => {
  it('about no submission are deleted at the age of submissions, except with waiting deliveries', async () => {
    const ledger = openLedger();
    for (let at = 0; at < 60; at++) changeUpstream(ledger, at);
    ledger.track([trackRequest('open')], 0);
    ledger.record([observation('error', 100, 'open')], context());
    addHook(ledger, ['*']);
    changeUpstream(ledger, 200);
    // Written by a clock that was ahead.
    changeUpstream(ledger, 9 * DAY_MS);
    changeUpstream(ledger, 300);
    settle(ledger, (index) => (index === 0 ? 'waits' : 'delivered'));
    const { clock, pruned } = openMaintenance(ledger, { submissionsMs: DAY_MS }, 2 * DAY_MS);
    await clock.advance(2 * MINUTE_MS);
    expect(ledger.events.after(0, 100).map(({ type, at }) => [type, at])).toEqual([
      ['submission.failing', 100],
      ['upstream.up', 200],
      ['upstream.up', 9 * DAY_MS],
    ]);
    expect(pruned).toEqual([{ submissions: 0, events: 61, deliveries: 0 }]);
  });
});

it('deletes entries of the audit once they are older than its days, by a day at most', async () => {
  const ledger = openLedger();
  const revoke = { action: 'tokens.revoke', subject: '1' } as const;
  for (let day = 0; day < 5; day += 1) ledger.audit.append(SERVER, day * DAY_MS, revoke);
  const { clock } = openMaintenance(ledger, { auditMs: 2 * DAY_MS }, 2 * DAY_MS);
  await clock.advance(HOUR_MS);
  clock.skip(3 * DAY_MS);
  await clock.advance(HOUR_MS);
  const { entries } = ledger.audit.list({ limit: 10 });
  const kept = entries.filter(({ action }) => action === 'tokens.revoke');
  expect(kept.map(({ at }) => at / DAY_MS)).toEqual([4]);
  expect(entries[0]).toMatchObject({ action: 'audit.prune', subject: '4' });
});

describe('references to deleted records', () => {
  it('include the newest missing event, and no number is reused', async () => {
    const ledger = openLedger();
    finalize(ledger, 10);
    expect(ledger.events.missingThrough()).toBe(0);
    const { clock } = openMaintenance(ledger, { submissionsMs: HOUR_MS }, 3 * HOUR_MS);
    await clock.advance(2 * MINUTE_MS);
    expect(ledger.events.missingThrough()).toBe(9);
    expect(ledger.events.newestSeq()).toBe(10);
    const { next } = ledger.search.list({ limit: 1, after: [Number.MAX_SAFE_INTEGER] });
    expect(next).toBeNull();
    finalize(ledger, 10, clock.now());
    expect(ledger.events.after(0, 100).map(({ seq }) => seq)).toEqual([
      10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
    ]);
    expect(historyOf(ledger, 's3')).toMatchObject([
      { seq: 24, version: 1, status: 'tracking' },
      { seq: 33, version: 2, status: 'finalized' },
    ]);
    // s9 kept the greatest position, so that every cursor continues where it was.
    expect(
      ledger.search
        .list({ limit: 100, after: [11] })
        .submissions.map(({ submissionId }) => submissionId),
    ).toEqual(['s9']);
  });
});

it('continues with the other tasks when one fails, and again a minute later', async () => {
  const ledger = openLedger();
  finalize(ledger, 30);
  changeUpstream(ledger, 0);
  const { submissions } = ledger.pruning;
  ledger.pruning.submissions = () => {
    throw new Error('no disk');
  };
  const { clock, errors, pruned } = openMaintenance(
    ledger,
    { submissionsMs: HOUR_MS },
    3 * HOUR_MS,
  );
  await clock.advance(MINUTE_MS + 1_000);
  expect(errors).toHaveLength(1);
  expect(pruned).toEqual([{ submissions: 0, events: 1, deliveries: 0 }]);
  ledger.pruning.submissions = submissions;
  await clock.advance(2 * MINUTE_MS);
  expect(idsOf(ledger)).toEqual(['s29']);
});
