import { describe, expect, it } from 'vitest';
import { toEventBody } from '../../src/notifications/event-body.ts';
import { context, historyOf, observation } from '../support/ledger/domain.ts';
import {
  type Ledger,
  openLedger,
  rawConnection,
  trackRequest,
} from '../support/ledger/ledger-file.ts';

const LIMITS = { deadlineAt: 1_000, graceEndsAt: 300, stuckAt: 200 };
const LATER = { deadlineAt: 50_000, graceEndsAt: 9_500, stuckAt: 20_000 };
const RETRACK = { ...LATER, retrack: true };

/** A ledger with one submission that expired after it was seen. */
function openExpired(): Ledger {
  const ledger = openLedger();
  ledger.track([trackRequest('s', { ...LIMITS, metadata: { order: 1 } })], 100);
  ledger.record([observation('not_found', 150, 's')], context());
  ledger.record([observation('pending', 1_500, 's')], context());
  expect(ledger.submissions.get('s')?.status).toBe('expired');
  return ledger;
}

const eventsOf = (ledger: Ledger) =>
  ledger.events.after(0, 100).map((event) => ('damage' in event ? event : toEventBody(event)));

/** Ends a submission with each final status that is not finalized. */
const ENDS: [status: string, end: (ledger: Ledger) => void][] = [
  ['cancelled', (ledger) => ledger.cancel(['s'], 500)],
  ['rejected', (ledger) => ledger.record([observation('rejected', 500, 's')], context())],
  ['expired', (ledger) => ledger.record([observation('pending', 1_500, 's')], context())],
  ['failed', (ledger) => ledger.record([observation('error', 1_500, 's')], context())],
  [
    'unknown',
    (ledger) => {
      ledger.update('s', { deadlineAt: 300_000 }, 120);
      for (const at of [150, 200_000])
        ledger.record([observation('not_found', at, 's')], context());
    },
  ],
];

describe('a submission that has ended', () => {
  it.each(ENDS)('as %s is tracked again on request, and only then', (status, end) => {
    const ledger = openLedger();
    ledger.track([trackRequest('s', LIMITS)], 100);
    end(ledger);
    const ended = ledger.submissions.get('s');
    expect(ended?.status).toBe(status);
    expect(ledger.track([trackRequest('s', LATER)], 300_000)).toMatchObject({
      submissions: [{ effect: 'already_final', submission: ended }],
    });
    const deadlineAt = 400_000;
    const result = ledger.track([trackRequest('s', { ...RETRACK, deadlineAt })], 300_000);
    expect(result).toMatchObject({ submissions: [{ effect: 'retracked' }] });
    expect(ledger.submissions.get('s')).toMatchObject({
      status: 'tracking',
      watched: true,
      stuck: false,
      trackedAt: 300_000,
      deadlineAt,
      polledAt: null,
      notFoundSince: null,
      upstreamState: null,
      error: null,
      envelope: null,
      polls: ended?.polls,
      version: (ended?.version ?? 0) + 1,
    });
    expect(historyOf(ledger, 's').at(-1)).toMatchObject({
      status: 'tracking',
      previousStatus: status,
      at: 300_000,
    });
    expect(
      ledger.submissions.listWatched('default', { after: 0, limit: 10 }).watched,
    ).toMatchObject([{ submissionId: 's' }]);
  });

  it('as finalized stays so', () => {
    const ledger = openLedger();
    ledger.track([trackRequest('s')], 100);
    ledger.record([observation('finalized', 200, 's')], context());
    const before = ledger.submissions.get('s');
    expect(ledger.track([trackRequest('s', { retrack: true })], 300)).toEqual({
      kind: 'tracked',
      submissions: [{ submission: before, effect: 'already_final', kept: [] }],
    });
    expect(ledger.submissions.get('s')).toEqual(before);
  });

  it('is not pruned once it is tracked again', () => {
    const ledger = openExpired();
    ledger.track([trackRequest('newer')], 200);
    const prune = () =>
      ledger.pruning.submissions({
        after: { endedAt: 0, id: 0 },
        before: 1e12,
        limit: 10,
      });
    ledger.track([trackRequest('s', RETRACK)], 10_000);
    expect(prune()).toMatchObject({ deleted: 0 });
    ledger.cancel(['s'], 20_000);
    expect(prune()).toMatchObject({ deleted: 1 });
  });
});

describe('the events', () => {
  it('report the retrack, and those before it keep their content', () => {
    const ledger = openExpired();
    const before = eventsOf(ledger);
    ledger.track(
      [trackRequest('s', { ...RETRACK, metadata: { order: 2 }, named: ['metadata'] })],
      10_000,
    );
    const after = eventsOf(ledger);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.at(-1)).toMatchObject({
      type: 'submission.retracked',
      data: {
        previous_status: 'expired',
        previous_upstream_state: 'Pending',
        submission: {
          status: 'tracking',
          metadata: { order: 2 },
          tracked_at: '1970-01-01T00:00:10.000Z',
          deadline_at: '1970-01-01T00:00:50.000Z',
          upstream_state: null,
        },
      },
    });
  });
});

describe('the schema', () => {
  it.each(['finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled'])(
    'lets no change leave the status %s for one that is not tracking',
    (status) => {
      const ledger = openLedger();
      ledger.track([trackRequest('s')], 0);
      const raw = rawConnection(ledger.file);
      raw.prepare('UPDATE submissions SET status = ?').run(status);
      expect(() => raw.exec("UPDATE submissions SET status = 'pending'")).toThrow(
        /only tracking an ended submission again/,
      );
    },
  );

  it('lets no other change leave a final status', () => {
    const ledger = openExpired();
    const raw = rawConnection(ledger.file);
    const reopen = "version = version + 1, watched = 1, ended_at = NULL WHERE status = 'expired'";
    for (const sql of [
      "UPDATE submissions SET status = 'tracking'",
      `UPDATE submissions SET status = 'pending', ${reopen}`,
      `UPDATE submissions SET status = 'finalized', ${reopen}`,
      "UPDATE submissions SET status = 'tracking', version = version + 1, watched = 1",
      "UPDATE submissions SET status = 'tracking', watched = 1, ended_at = NULL",
      "UPDATE submissions SET status = 'tracking', version = version + 1, ended_at = NULL",
    ])
      expect(() => raw.exec(sql), sql).toThrow(/only tracking an ended submission again/);
    raw.exec(`UPDATE submissions SET status = 'tracking', ${reopen}`);
    raw.exec("UPDATE submissions SET status = 'finalized', ended_at = 1, watched = 0");
    expect(() =>
      raw.exec(
        "UPDATE submissions SET status = 'tracking', version = version + 1, watched = 1, ended_at = NULL",
      ),
    ).toThrow(/only tracking/);
  });
});
