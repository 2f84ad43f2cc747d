import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { context, historyOf, observation } from '../support/ledger/domain.ts';
import {
  allSubmissions,
  integrityOf,
  type Ledger,
  openLedger,
  trackRequests,
} from '../support/ledger/ledger-file.ts';

const MAX_PAGES = 60;

/** Opens a ledger without space for another large batch. */
function fullLedger(): { ledger: Ledger; kept: string[] } {
  const ledger = openLedger({ maxPages: MAX_PAGES });
  const kept: string[] = [];
  for (let i = 0; i < 1_000; i++) {
    const requests = trackRequests(20, `${i}-`);
    try {
      ledger.track(requests, i);
    } catch {
      return { ledger, kept };
    }
    kept.push(...requests.map(({ submissionId }) => submissionId));
  }
  throw new Error('the disk was never full');
}

function problemOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof LedgerError) return error.problem;
    throw error;
  }
  return 'none';
}

describe('a full disk', () => {
  it('a batch that does not fit is refused as a whole', () => {
    const { ledger, kept } = fullLedger();
    const big = trackRequests(2_000, 'big-');
    expect(problemOf(() => ledger.track(big, 0))).toBe('full');
    expect(big.filter(({ submissionId }) => ledger.submissions.get(submissionId))).toEqual([]);
    expect(kept.length).toBeGreaterThan(0);
    expect(
      allSubmissions(ledger)
        .map(({ submissionId }) => submissionId)
        .sort(),
    ).toEqual(kept.sort());
  });

  it('reads still work, and observations that do not fit change nothing', () => {
    const { ledger, kept } = fullLedger();
    const response = `{"state":"Error","error":"${'x'.repeat(4_000)}","data":null}`;
    const verdict = { kind: 'error', state: 'Error', error: 'no', envelope: response } as const;
    const observations = kept.map((id) => observation(verdict, 1_000, id));
    expect(problemOf(() => ledger.record(observations, context()))).toBe('full');
    for (const id of kept) {
      expect(ledger.submissions.get(id)).toMatchObject({ status: 'tracking', polls: 0 });
      expect(historyOf(ledger, id)).toHaveLength(1);
    }
  });

  it('writes succeed again once there is space', () => {
    const { ledger, kept } = fullLedger();
    expect(problemOf(() => ledger.track(trackRequests(2_000, 'big-'), 0))).toBe('full');
    ledger.close();
    const again = openLedger({ file: ledger.file });
    expect(again.track(trackRequests(2_000, 'big-'), 0).kind).toBe('tracked');
    expect(allSubmissions(again)).toHaveLength(kept.length + 2_000);
    expect(integrityOf(ledger.file)).toBe('ok');
  });
});
