import { expect, it } from 'vitest';
import type { Position } from '../../src/ledger/bounded-search.ts';
import type { Ledger } from '../../src/wiring/ledger-stores.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, trackRequests } from '../support/ledger/ledger-file.ts';

/** Reads all pages; `between` runs after each of them. */
function pages(ledger: Ledger, prefix: string, limit: number, between = () => {}): string[][] {
  const all: string[][] = [];
  for (let after: Position | null | undefined; after !== null; ) {
    const page = ledger.search.list({ prefix, limit, after });
    all.push(page.submissions.map(({ submissionId }) => submissionId));
    after = page.next;
    between();
  }
  return all;
}

function ledgerWith(...ids: string[]): Ledger {
  const ledger = openLedger();
  const [request] = trackRequests(1);
  if (!request) throw new Error('no request');
  ledger.track(
    ids.map((submissionId) => ({ ...request, submissionId })),
    0,
  );
  return ledger;
}

it('finds submissions of every status, ordered by id', () => {
  const ledger = ledgerWith('b', 'ab2', 'a', 'ab', 'ab1', 'ac', 'Ab');
  ledger.record([observation('finalized', 5, 'ab1')], context());
  expect(pages(ledger, 'ab', 9)).toEqual([['ab', 'ab1', 'ab2']]);
  expect(pages(ledger, 'ab1', 9)).toEqual([['ab1']]);
  expect(pages(ledger, 'abc', 9)).toEqual([[]]);
  expect(ledger.search.list({ prefix: 'ab1', limit: 1 }).submissions).toEqual([
    ledger.submissions.get('ab1'),
  ]);
});

it('treats wildcards literally', () => {
  const ledger = ledgerWith('a%b', 'a_b', 'a*b', 'aXb', 'a!', 'a~', "a'");
  for (const prefix of ['a%', 'a_', 'a*', 'a!', 'a~', "a'"])
    expect(pages(ledger, prefix, 9).flat(), prefix).toHaveLength(1);
  expect(pages(ledger, 'a', 2).flat()).toEqual(['a!', 'a%b', "a'", 'a*b', 'aXb', 'a_b', 'a~']);
});

it('pages without a gap or a repeat while others are added', () => {
  const ledger = openLedger();
  const ids = trackRequests(300).map(({ submissionId }) => submissionId);
  ledger.track(trackRequests(300), 0);
  let added = 0;
  const seen = pages(ledger, 's', 7, () =>
    ledger.track(trackRequests(1, `s${added++}-`), 1),
  ).flat();
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.filter((id) => ids.includes(id))).toEqual(ids.toSorted());
});

it('continues after an id that is not tracked or does not match', () => {
  const ledger = ledgerWith('a', 'b1', 'b3', 'c');
  const after = (id: string) =>
    ledger.search
      .list({ prefix: 'b', limit: 9, after: [id] })
      .submissions.map(({ submissionId }) => submissionId);
  expect([after('b'), after('b2'), after('a'), after('c'), after('b3')]).toEqual([
    ['b1', 'b3'],
    ['b3'],
    ['b1', 'b3'],
    [],
    [],
  ]);
});
