import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { type HistoryEntry, isFinal } from '../../src/submissions/submission.ts';
import type { UpstreamChange } from '../../src/submissions/upstream.ts';
import type { Ledger } from '../../src/wiring/ledger-stores.ts';
import {
  context,
  historyOf,
  LEGAL,
  observation,
  VERDICTS,
  type VerdictName,
} from '../support/ledger/domain.ts';
import {
  integrityOf,
  isUnbroken,
  openLedger,
  outboxOf,
  trackRequest,
} from '../support/ledger/ledger-file.ts';

const IDS = ['s0', 's1', 's2'];
const LIMITS = { graceEndsAt: 60_000, stuckAt: 120_000, deadlineAt: 600_000 };
const final = (hash: string) => ({
  ...VERDICTS.finalized,
  envelope: VERDICTS.finalized.envelope.replace('0xb1', hash),
});
const RESPONSES = [...(Object.keys(VERDICTS) as VerdictName[]), final('0xb2'), final('0xb3')];

const id = fc.constantFrom(...IDS);
const observed = fc.record({
  id,
  verdict: fc.constantFrom(...RESPONSES),
  lateMs: fc.oneof(fc.constant(0), fc.nat(90_000)),
});
/**
 * Operations on a ledger, and the steps of the clock between them: mostly forward, sometimes back.
 */
const step = fc.record({
  afterMs: fc.oneof(
    { weight: 4, arbitrary: fc.nat(5_000) },
    { weight: 2, arbitrary: fc.nat(400_000) },
    { weight: 1, arbitrary: fc.integer({ min: -200_000, max: -1 }) },
  ),
  act: fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('observe' as const),
        all: fc.array(observed, { maxLength: 4 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('track' as const),
        ids: fc.array(id, { maxLength: 3 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), id }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('turn' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
  ),
});
const run = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 25, size: 'max' }),
  recheck: fc.boolean(),
});
type Run = typeof run extends fc.Arbitrary<infer T> ? T : never;

const opened = new Set<Ledger>();
afterEach(() => {
  for (const ledger of opened) ledger.close();
  opened.clear();
});

/**
 * Applies the operations as the server does, without its pacing. With `restarts`, the ledger is
 * closed and opened where the run requests it.
 */
function play({ steps, recheck }: Run, { restarts }: { restarts: boolean }): Ledger {
  let ledger = openLedger();
  let now = 1_000_000;
  let outageMs = 0;
  let outSince: number | null = null;
  const track = (ids: readonly string[]) =>
    ledger.track(
      ids.map((name) => trackRequest(name, shifted(now))),
      now,
    );
  track(IDS.slice(0, 2));
  for (const { afterMs, act } of steps) {
    now = Math.max(0, now + afterMs);
    const ongoingMs = outSince === null ? 0 : Math.max(0, now - outSince);
    switch (act.kind) {
      case 'observe': {
        const given = context({
          now,
          outageMs: outageMs + ongoingMs,
          upstreamUp: outSince === null,
          recheck,
        });
        ledger.record(
          act.all.map(({ id, verdict, lateMs }) =>
            observation(verdict, Math.max(0, now - lateMs), id),
          ),
          given,
        );
        break;
      }
      case 'track':
        track(act.ids);
        break;
      case 'cancel':
        ledger.cancel([act.id], now);
        break;
      case 'turn': {
        outageMs += ongoingMs;
        outSince = outSince === null ? now : null;
        const record = {
          state: outSince === null ? 'closed' : 'down',
          outSince,
          outageMs,
        } as const;
        const event = outSince === null ? 'upstream.up' : 'upstream.down';
        ledger.recordUpstream({
          upstream: 'default',
          at: now,
          event,
          record,
        } satisfies UpstreamChange);
        break;
      }
      case 'restart':
        if (!restarts) break;
        ledger.close();
        ledger = openLedger({ file: ledger.file });
        break;
      default:
        act satisfies never;
    }
  }
  opened.add(ledger);
  return ledger;
}

function shifted(now: number) {
  return Object.fromEntries(Object.entries(LIMITS).map(([name, ms]) => [name, now + ms]));
}

/** Returns the events that a history implies. */
function typesReportedBy(history: readonly HistoryEntry[]): string[] {
  return history.flatMap(({ status, previousStatus, upstreamState }) => {
    if (previousStatus === null) return [];
    if (status === 'pending') return previousStatus === 'failing' ? ['submission.recovered'] : [];
    if (status === 'failing') return previousStatus === 'failing' ? [] : ['submission.failing'];
    if (status === 'finalized' && previousStatus === 'finalized') return ['submission.corrected'];
    expect(status === 'finalized' ? upstreamState : 'Finalized').toBe('Finalized');
    return [`submission.${status}`];
  });
}

describe('for any sequence of operations, with a clock that goes forward and back,', () => {
  it('every history is legal and determines its submission', () => {
    fc.assert(
      fc.property(run, (given) => {
        const ledger = play(given, { restarts: false });
        const events = outboxOf(ledger.file);
        for (const name of IDS) {
          const submission = ledger.submissions.get(name);
          const history = historyOf(ledger, name);
          expect(isUnbroken(history)).toBe(true);
          for (const [index, { status, previousStatus }] of history.entries()) {
            if (index === 0) expect([status, previousStatus]).toEqual(['tracking', null]);
            else expect(LEGAL[previousStatus ?? status]).toContain(status);
          }
          const reported = events
            .filter((event) => event.submission_id === name)
            .map(({ type }) => type);
          expect(reported.filter((type) => type !== 'submission.stuck')).toEqual(
            typesReportedBy(history),
          );
          expect(reported.filter((type) => type === 'submission.stuck').length).toBe(
            submission?.stuck ? 1 : 0,
          );
          if (!submission) {
            expect(history).toEqual([]);
            continue;
          }
          const { status, version, upstreamState, error, envelope } = history.at(
            -1,
          ) as HistoryEntry;
          expect(submission).toMatchObject({ status, version, upstreamState, error, envelope });
          const finalizedAt = history.find((entry) => entry.status === 'finalized')?.at ?? null;
          expect(submission.finalizedAt).toBe(finalizedAt);
          if (!isFinal(status)) expect(submission.watched).toBe(true);
        }
        expect(integrityOf(ledger.file)).toBe('ok');
      }),
      { numRuns: 60 },
    );
  });
});
