import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Position, walkSql } from '../../src/ledger/page.ts';
import { orderOf, type SubmissionFilter, walkOf } from '../../src/submissions/search.ts';
import { CHAIN_VERDICTS, type Submission } from '../../src/submissions/submission.ts';
import { context, observation, VERDICTS } from '../support/ledger/domain.ts';
import {
  type Ledger,
  openLedger,
  rawConnection,
  trackRequest,
  trackRequests,
} from '../support/ledger/ledger-file.ts';

function listed(ledger: Ledger, filter: SubmissionFilter, limit = 1_000): string[] {
  const ids: string[] = [];
  for (let after: Position | null | undefined; after !== null; ) {
    const page = ledger.search.list({ ...filter, limit, after });
    expect(page.submissions.length).toBeLessThanOrEqual(limit);
    ids.push(...page.submissions.map(({ submissionId }) => submissionId));
    after = page.next;
  }
  return ids;
}

function counted(ledger: Ledger, filter: SubmissionFilter): number {
  let total = 0;
  for (let after: Position | null | undefined; after !== null; ) {
    const { count, next } = ledger.search.count(filter, after);
    total += count;
    after = next;
  }
  return total;
}

/**
 * Submissions of two upstreams with all kinds of times, statuses and metadata, tracked out of the
 * order of time.
 */
function variedLedger(): { ledger: Ledger; all: (Submission & { endedAt: number | null })[] } {
  const ledger = openLedger();
  ledger.upstream('other');
  const times = [50, 20, 20, 70, 10, 40];
  for (const [index, trackedAt] of times.entries()) {
    const requests = Array.from({ length: 6 }, (_, i) =>
      trackRequest(['aa', 'ab', 'Ab', 'b', 'ba', 'c'][i] + String(index), {
        upstream: i % 3 === 2 ? 'other' : 'default',
        metadata:
          i === 4
            ? null
            : {
                order: i % 2 === 0 ? index : String(index),
                team: i < 3 ? 'x' : 'y',
                more: { order: 1 },
              },
      }),
    );
    ledger.track(requests, trackedAt);
    const verdict = CHAIN_VERDICTS[index % 3] ?? 'confirmed';
    const verified = { ...VERDICTS.finalized, chain: { verdict, reason: null } };
    const results = [verified, 'pending', 'error', 'rejected'] as const;
    ledger.record(
      requests
        .slice(0, 4)
        .map(({ submissionId }, i) =>
          observation(results[i] ?? 'pending', trackedAt + 100 - index, submissionId),
        ),
      // Every other finalized submission waits for its recheck.
      context({ recheck: index % 2 === 0 }),
    );
    ledger.cancel([requests[4]?.submissionId ?? ''], trackedAt + 5);
  }
  const rows = rawConnection(ledger.file).prepare(
    'SELECT submission_id AS id, ended_at AS endedAt FROM submissions ORDER BY id',
  );
  const ended = new Map(
    (rows.all() as { id: string; endedAt: number | null }[]).map(({ id, endedAt }) => [
      id,
      endedAt,
    ]),
  );
  const all = ledger.search
    .list({ limit: 1_000 })
    .submissions.toReversed()
    .map((submission) => ({ ...submission, endedAt: ended.get(submission.submissionId) ?? null }));
  expect(all).toHaveLength(36);
  return { ledger, all };
}

/** More submissions than one page examines. */
const COUNT = 5_000;

const time = fc.option(fc.integer({ min: 0, max: 180 }), { nil: undefined });
const filters: fc.Arbitrary<SubmissionFilter> = fc.record(
  {
    statuses: fc.uniqueArray(
      fc.constantFrom(
        'tracking',
        'pending',
        'failing',
        'finalized',
        'rejected',
        'cancelled',
        'expired',
      ),
      {
        minLength: 1,
      },
    ) as fc.Arbitrary<NonNullable<SubmissionFilter['statuses']>>,
    chain: fc.uniqueArray(fc.constantFrom(...CHAIN_VERDICTS), { minLength: 1 }),
    upstream: fc.constantFrom('default', 'other', 'third'),
    metadata: fc.constantFrom<Record<string, string>>(
      { order: '3' },
      { team: 'x' },
      { team: 'y', order: '2' },
      { none: 'x' },
    ),
    trackedSince: time,
    trackedUntil: time,
    endedSince: time,
    endedUntil: time,
    prefix: fc.constantFrom('a', 'ab', 'AB', 'b', 'c3', 'z'),
  },
  { requiredKeys: [] },
);

describe('a search', () => {
  it('finds what matches all conditions, in order, in pages of any size, and counts as many', () => {
    const { ledger, all } = variedLedger();
    const within = (at: number | null, since = -1, until = 10_000) =>
      at !== null && at >= since && at < until;
    const expected = (filter: SubmissionFilter) => {
      const { trackedSince, trackedUntil, endedSince, endedUntil, prefix = '' } = filter;
      const order = orderOf(filter);
      const key = ({ trackedAt, endedAt }: (typeof all)[number]) =>
        order === 'tracked' ? trackedAt : order === 'ended' ? (endedAt ?? 0) : 0;
      return all
        .map((one, index) => ({ ...one, index }))
        .filter(
          (one) =>
            (filter.statuses?.includes(one.status) ?? true) &&
            (!filter.chain || (one.chain !== null && filter.chain.includes(one.chain))) &&
            (filter.upstream ?? one.upstream) === one.upstream &&
            Object.entries(filter.metadata ?? {}).every(
              ([name, value]) => String(one.metadata?.[name]) === value,
            ) &&
            within(one.trackedAt, trackedSince, trackedUntil) &&
            ((endedSince ?? endedUntil) === undefined ||
              within(one.endedAt, endedSince, endedUntil)) &&
            // A prefix of a UUID in upper case also finds the canonical one; no id of this ledger
            // is a UUID.
            one.submissionId.startsWith(prefix),
        )
        .toSorted((a, b) =>
          order === 'id'
            ? a.submissionId < b.submissionId
              ? -1
              : 1
            : key(b) - key(a) || b.index - a.index,
        )
        .map(({ submissionId }) => submissionId);
    };
    fc.assert(
      fc.property(filters, fc.integer({ min: 1, max: 9 }), (filter, limit) => {
        const found = expected(filter);
        expect(listed(ledger, filter, limit)).toEqual(found);
        expect(counted(ledger, filter)).toBe(found.length);
      }),
      { numRuns: 200 },
    );
  });

  it('ends a page early among many others, and leads to every match', () => {
    const ledger = openLedger();
    ledger.upstream('rare');
    ledger.track([trackRequest('oldest', { upstream: 'rare' })], 0);
    ledger.track(trackRequests(COUNT), 1);
    const rare = { upstream: 'rare', trackedSince: 0 };
    const first = ledger.search.list({ ...rare, limit: 10 });
    expect(first).toMatchObject({ submissions: [], next: [1, 1_002] });
    expect(ledger.search.count(rare)).toMatchObject({ count: 0, next: [1, 1_002] });
    expect(listed(ledger, rare)).toEqual(['oldest']);
    expect(counted(ledger, { upstream: 'default' })).toBe(COUNT);
    // Thousands of submissions that were tracked at the same time.
    expect(listed(ledger, { trackedSince: 1, upstream: 'default' })).toHaveLength(COUNT);
    expect(listed(ledger, { prefix: 's2', upstream: 'rare' })).toEqual([]);
  });

  it.each<[SubmissionFilter, string]>([
    [{ prefix: 'aB' }, 'sqlite_autoindex_submissions_1'],
    [{ metadata: { order: '7', team: 'x' } }, 'USING PRIMARY KEY (key=? AND value=?'],
    [{ endedSince: 5 }, 'submissions_ended'],
    [{ statuses: ['failed', 'expired'], trackedSince: 5 }, 'submissions_by_status'],
    [{ chain: ['contradicted'], statuses: ['finalized'] }, 'submissions_by_chain'],
    [{ trackedUntil: 5 }, 'submissions_tracked'],
    [{ upstream: 'other' }, 'submissions_by_upstream'],
    [{}, 'INTEGER PRIMARY KEY'],
  ])('for %j reads an index in the order of the list', (filter, index) => {
    const walk = walkOf(filter, undefined);
    const steps = rawConnection(openLedger().file)
      .prepare(`EXPLAIN QUERY PLAN ${walkSql(walk)}`)
      .all({ ...walk.parameters, rows: 1 })
      .map((step) => (step as { detail: string }).detail);
    expect(steps[0]).toMatch(/MERGE|SEARCH/);
    expect(steps.some((step) => step.includes(index))).toBe(true);
    expect(steps.filter((step) => /TEMP B-TREE|SCAN (?!value|json_each)/.test(step))).toEqual([]);
  });

  it('of one condition with an index is complete at once, wherever the matches are', () => {
    const ledger = openLedger();
    ledger.track([trackRequest('oldest', { metadata: { order: 7 } })], 0);
    ledger.track(trackRequests(COUNT), 100);
    ledger.cancel(['oldest'], 5);
    for (const filter of [
      { metadata: { order: '7' } },
      { statuses: ['cancelled', 'expired'] },
      { trackedUntil: 50 },
      { endedUntil: 50 },
      { prefix: 'old' },
      { metadata: { order: '7' }, trackedSince: 0 },
      { statuses: ['cancelled'], prefix: 'o', upstream: 'default' },
    ] satisfies SubmissionFilter[]) {
      const { submissions, next } = ledger.search.list({ ...filter, limit: 10 });
      expect(
        [submissions.map(({ submissionId }) => submissionId), next],
        JSON.stringify(filter),
      ).toEqual([['oldest'], null]);
      expect(ledger.search.count(filter)).toEqual({ count: 1, next: null });
    }
    expect(ledger.search.count({})).toEqual({ count: COUNT + 1, next: null });
    expect(ledger.search.count({ statuses: ['tracking', 'tracking'] })).toEqual({
      count: COUNT,
      next: null,
    });
  });
});

describe('metadata', () => {
  const found = (ledger: Ledger, name: string, value: string) =>
    listed(ledger, { metadata: { [name]: value } });

  it('is found by values as text, whatever their type', () => {
    const ledger = openLedger();
    const values = {
      number: 4711,
      fraction: 0.1 + 0.2,
      large: 1e21,
      small: 1e-7,
      unsafe: 2 ** 60,
      negative: -0.5,
      text: 'Ünï "quoted" \\ \n\u0000 end',
      empty: '',
      yes: true,
      nothing: null,
      'a.b "c" \\ é': 'x',
      $: 'y',
      '[0]': 'z',
    };
    ledger.track([trackRequest('one', { metadata: values })], 0);
    for (const [name, value] of Object.entries(values))
      expect(
        found(ledger, name, typeof value === 'string' ? value : JSON.stringify(value)),
        name,
      ).toEqual(['one']);
    ledger.track([trackRequest('two', { metadata: { number: '4711' } })], 0);
    expect(found(ledger, 'number', '4711')).toEqual(['two', 'one']);
    expect(found(ledger, 'number', '4711.0')).toEqual([]);
    expect(found(ledger, 'Number', '4711')).toEqual([]);
  });

  it('is not found by nested values, long ones, and those after the first 32', () => {
    const ledger = openLedger();
    const [name, value] = ['n'.repeat(128), 'v'.repeat(256)];
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`k${index}`, index]));
    const nested = {
      object: { a: 1 },
      list: [1],
      [name]: value,
      [`${name}+`]: 1,
      long: `${value}+`,
    };
    ledger.track(
      [trackRequest('nested', { metadata: nested }), trackRequest('many', { metadata: many })],
      0,
    );
    expect(found(ledger, name, value)).toEqual(['nested']);
    for (const [other, text] of [
      ['a', '1'],
      ['object', '{"a":1}'],
      ['list', '[1]'],
      [`${name}+`, '1'],
      ['long', `${value}+`],
    ])
      expect(found(ledger, other ?? '', text ?? '')).toEqual([]);
    expect(found(ledger, 'k31', '31')).toEqual(['many']);
    expect(found(ledger, 'k32', '32')).toEqual([]);
  });

  it('is found by its new values once it is changed, and not after the submission is deleted', () => {
    const ledger = openLedger();
    ledger.track(
      ['a', 'b', 'c'].map((id) => trackRequest(id, { metadata: { order: 1, team: id } })),
      0,
    );
    const raw = rawConnection(ledger.file);
    raw
      .prepare('UPDATE submissions SET metadata = ? WHERE submission_id = ?')
      .run('{"order":2}', 'b');
    raw.prepare('UPDATE submissions SET metadata = NULL WHERE submission_id = ?').run('c');
    expect([
      found(ledger, 'order', '1'),
      found(ledger, 'order', '2'),
      found(ledger, 'team', 'b'),
    ]).toEqual([['a'], ['b'], []]);
    ledger.cancel(['a', 'b', 'c'], 5);
    ledger.track([trackRequest('newest')], 6);
    ledger.pruning.submissions({
      after: { endedAt: 0, id: 0 },
      before: 10,
      limit: 100,
    });
    expect(raw.prepare('SELECT count(*) FROM submission_metadata').pluck().get()).toBe(0);
    expect(counted(ledger, {})).toBe(1);
  });
});

it('a lookup of long responses ends early', () => {
  const ledger = openLedger();
  const requests = trackRequests(1_200).map((request) => ({
    ...request,
    metadata: { note: 'x'.repeat(4_000) },
  }));
  ledger.track(requests, 0);
  const ids = requests.map(({ submissionId }) => submissionId);
  const first = ledger.submissions.lookup(ids);
  expect(first.submissions.length).toBeGreaterThan(1_000);
  expect(first.remaining).toEqual(ids.slice(first.submissions.length));
  expect(ledger.submissions.lookup(first.remaining)).toMatchObject({ notFound: [], remaining: [] });
});
