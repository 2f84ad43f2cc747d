import { afterEach, expect, it, vi } from 'vitest';
import { ReadLimit } from '../../src/ledger/page.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, trackRequests } from '../support/ledger/ledger-file.ts';

afterEach(() => void vi.restoreAllMocks());

/**
 * Returns the number of rows of a page whose rows take these times, in milliseconds; undefined: it
 * did not end.
 */
function rowsUntilLimit(times: readonly number[]): number | undefined {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const limit = new ReadLimit();
  const last = times.findIndex((ms) => {
    now += ms;
    return limit.isReached();
  });
  return last < 0 ? undefined : last + 1;
}
const rows = (count: number, ms: number) => Array.from({ length: count }, () => ms);

it('ends a page whose rows come from a disk', () => {
  expect(rowsUntilLimit(rows(1_000, 0.25))).toBe(21);
  expect(rowsUntilLimit(rows(1_000, 5))).toBe(10);
});

it('ends a page on the disk soon, however many rows in memory were before', () => {
  expect(rowsUntilLimit([...rows(2_000, 0.01), ...rows(100, 5)])).toBe(2_010);
});

it('ends no page of rows in memory, however long it takes, or how often the process has no core', () => {
  expect(rowsUntilLimit(rows(4_000, 0.05))).toBeUndefined();
  expect(rowsUntilLimit([...rows(9, 500), ...rows(2_000, 0.01)])).toBeUndefined();
  expect(rowsUntilLimit([...rows(12, 0.3), ...rows(2_000, 0.05)])).toBeUndefined();
  const interrupted = rows(4_000, 0.01).map((ms, index) => (index % 60 === 59 ? 20 : ms));
  expect(rowsUntilLimit(interrupted)).toBeUndefined();
});

/** Returns the lengths of all pages, and their ids. */
function pagesOf<T>(page: (after: T | undefined) => { ids: number[]; next: T | null }) {
  const all = { lengths: [] as number[], ids: [] as number[] };
  for (let after: T | null | undefined; after !== null; ) {
    const { ids, next } = page(after);
    all.lengths.push(ids.length);
    all.ids.push(...ids);
    after = next;
  }
  return all;
}

it('short pages of deliveries and of the audit lead to every entry once', () => {
  const ledger = openLedger();
  const webhook = {
    url: 'https://hook.example',
    types: ['*'],
    metadata: null,
    description: '',
    enabled: true,
  };
  ledger.webhooks.create(
    { ...webhook, signature: 'v1' },
    { secret: 'whsec_c2VjcmV0', publicKey: null },
    0,
  );
  const requests = trackRequests(40);
  ledger.track(requests, 0);
  ledger.record(
    requests.map(({ submissionId }) => observation('finalized', 1, submissionId)),
    context(),
  );
  const actor = { name: 'the admin', credentialId: null, address: '192.0.2.1' };
  for (let at = 0; at < 40; at++) ledger.audit.append(actor, at, { action: 'webhooks.test' });
  // The rows of a page are found in memory, and those that they refer to are on the disk.
  let [now, calls] = [0, 0];
  vi.spyOn(performance, 'now').mockImplementation(() => {
    calls += 1;
    if (calls > 45) now += 1;
    return now;
  });
  const deliveries = pagesOf<readonly (number | string)[]>((after) => {
    calls = 0;
    const page = ledger.deliveries.list({ limit: 100, after });
    return { ids: page.deliveries.map(({ id }) => id), next: page.next };
  });
  const audit = pagesOf<number>((before) => {
    calls = 0;
    const page = ledger.audit.list({ limit: 100, before });
    return { ids: page.entries.map(({ seq }) => seq), next: page.nextBefore };
  });
  for (const { lengths, ids } of [deliveries, audit]) {
    expect(lengths.length).toBeGreaterThan(1);
    expect(ids).toEqual(Array.from({ length: 40 }, (_, index) => 40 - index));
  }
});
