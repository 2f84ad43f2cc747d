import fc from 'fast-check';
import { expect, it } from 'vitest';
import { openLedger, rawConnection, trackRequest } from '../support/ledger/ledger-file.ts';

/** The index as the triggers would make it from the stored metadata. */
const BY_SQL = `
  SELECT s.submission_id AS id, e.key, CASE e.type WHEN 'text' THEN e.value ELSE s.metadata -> e.fullkey END AS value
  FROM submissions s, json_each(s.metadata) e
  WHERE e.type NOT IN ('object', 'array') AND octet_length(e.key) BETWEEN 1 AND 128
    AND (e.type <> 'text' OR octet_length(e.value) <= 256)`;
const INDEXED = `
  SELECT s.submission_id AS id, m.key, m.value FROM submission_metadata m JOIN submissions s ON s.id = m.submission`;
const ORDER = 'ORDER BY id, key, value';

const name = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 4 }),
  fc.string({ maxLength: 140 }),
  fc.constantFrom('', '"', '\\', '1'),
);
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 1 }),
  fc.string({ maxLength: 300 }),
  fc.constantFrom(-0, 1e21, 1e-7, 'é'.repeat(128), 'é'.repeat(129)),
);

it('has the values of new submissions that its triggers would find, and none of deleted ones', () => {
  fc.assert(
    fc.property(fc.array(fc.dictionary(name, value, { maxKeys: 12 }), { maxLength: 30 }), (all) => {
      const ledger = openLedger();
      ledger.trackGroups(
        [all.map((metadata, index) => trackRequest(`s${index}`, { metadata }))],
        0,
      );
      const raw = rawConnection(ledger.file);
      expect(raw.prepare(`${INDEXED} ${ORDER}`).all()).toEqual(
        raw.prepare(`${BY_SQL} ${ORDER}`).all(),
      );
      raw.exec('UPDATE submissions SET metadata = NULL');
      expect(raw.prepare('SELECT count(*) FROM submission_metadata').pluck().get()).toBe(0);
      ledger.close();
    }),
    { numRuns: 30 },
  );
});

it('has the first 32 values of each of many submissions, with names of their own', () => {
  const ledger = openLedger();
  const metadataOf = (index: number) =>
    Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`n${index}-${at}`, at]));
  ledger.track(
    Array.from({ length: 100 }, (_, index) =>
      trackRequest(`s${index}`, { metadata: metadataOf(index) }),
    ),
    0,
  );
  const raw = rawConnection(ledger.file);
  expect(raw.prepare('SELECT count(*) FROM submission_metadata').pluck().get()).toBe(3_200);
  const find = (key: string, text: string) =>
    ledger.search.list({ metadata: { [key]: text }, limit: 2 }).submissions;
  expect([find('n99-31', '31').length, find('n99-32', '32').length]).toEqual([1, 0]);
});

it('has nothing of a request that is refused', () => {
  const ledger = openLedger();
  ledger.upstream('other');
  ledger.track([trackRequest('other', { upstream: 'other' })], 0);
  const results = ledger.trackGroups(
    [
      [trackRequest('a', { metadata: { n: 1 } }), trackRequest('other', { metadata: { n: 1 } })],
      [trackRequest('b', { metadata: { n: 1 } })],
    ],
    0,
  );
  expect(results.map(({ kind }) => kind)).toEqual(['conflict', 'tracked']);
  const found = ledger.search.list({ metadata: { n: '1' }, limit: 9 }).submissions;
  expect(found.map(({ submissionId }) => submissionId)).toEqual(['b']);
});
