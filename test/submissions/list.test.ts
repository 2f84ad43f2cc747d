import { describe, expect, it } from 'vitest';
import type { Position } from '../../src/ledger/bounded-search.ts';
import type { Status } from '../../src/submissions/submission.ts';
import type { Ledger } from '../../src/wiring/ledger-stores.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, trackRequests } from '../support/ledger/ledger-file.ts';

/** Reads all pages; `between` runs after each of them. */
function pages(
  ledger: Ledger,
  query: { status?: Status; limit: number },
  between = () => {},
): string[][] {
  const all: string[][] = [];
  const { status, limit } = query;
  for (let after: Position | null | undefined; after !== null; ) {
    const page = ledger.search.list({ ...(status && { statuses: [status] }), limit, after });
    all.push(page.submissions.map(({ submissionId }) => submissionId));
    after = page.next;
    between();
  }
  return all;
}

describe('listing', () => {
  it('returns the newest first, and ends after the oldest', () => {
    const ledger = openLedger();
    ledger.track(trackRequests(5), 0);
    expect(pages(ledger, { limit: 2 })).toEqual([['s4', 's3'], ['s2', 's1'], ['s0']]);
    expect(pages(ledger, { limit: 5 }), 'no empty page at the end').toHaveLength(1);
    expect(pages(openLedger(), { limit: 5 })).toEqual([[]]);
  });

  it('returns each submission as `get` does', () => {
    const ledger = openLedger();
    ledger.track(trackRequests(2), 0);
    ledger.record([observation('error', 5, 's0')], context());
    expect(ledger.search.list({ limit: 9 }).submissions).toEqual([
      ledger.submissions.get('s1'),
      ledger.submissions.get('s0'),
    ]);
  });

  it('pages through thousands without a gap or a repeat while others are added', () => {
    const ledger = openLedger();
    const old = trackRequests(3_000);
    ledger.track(old, 0);
    let added = 0;
    const seen = pages(ledger, { limit: 70 }, () =>
      ledger.track(trackRequests(10, `new${added++}-`), 1),
    ).flat();
    expect(seen).toEqual(old.map(({ submissionId }) => submissionId).reverse());
    expect(ledger.search.list({ limit: 1 }).submissions[0]?.submissionId).toMatch(/^new/);
  });

  it('pages by status without a gap or a repeat', () => {
    const ledger = openLedger();
    const ids = trackRequests(1_000).map(({ submissionId }) => submissionId);
    ledger.track(trackRequests(1_000), 0);
    const finalized = ids.filter((_, index) => index % 3 === 0);
    ledger.record(
      finalized.map((id) => observation('finalized', 5, id)),
      context(),
    );
    expect(pages(ledger, { status: 'finalized', limit: 50 }).flat()).toEqual(
      [...finalized].reverse(),
    );
    expect(pages(ledger, { status: 'tracking', limit: 50 }).flat()).toHaveLength(
      1_000 - finalized.length,
    );
    expect(pages(ledger, { status: 'expired', limit: 50 })).toEqual([[]]);
  });

  it('returns each submission once that keeps its status while others leave it', () => {
    const ledger = openLedger();
    ledger.track(trackRequests(500), 0);
    let next = 0;
    const leave = () => ledger.record([observation('pending', 5, `s${next++}`)], context());
    const seen = pages(ledger, { status: 'tracking', limit: 20 }, leave).flat();
    expect(new Set(seen).size).toBe(seen.length);
    for (let index = next; index < 500; index++) expect(seen).toContain(`s${index}`);
  });
});
