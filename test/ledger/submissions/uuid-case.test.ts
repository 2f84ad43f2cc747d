import { describe, expect, it } from 'vitest';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import { context, observation } from '../../support/ledger/domain.ts';
import { historyOf } from '../../support/ledger/histories.ts';
import {
  integrityOf,
  isUnbroken,
  openLedger,
  outboxOf,
  rawConnection,
  trackRequest,
} from '../../support/ledger/ledger-file.ts';
import { revertTo } from '../../support/ledger/revert-schema.ts';

const LOWER = 'abcdef01-2345-4678-9abc-def012345678';
const UPPER = LOWER.toUpperCase();
const MIXED = LOWER.replace('abc', 'AbC');
const ALONE = 'FEDCBA98-7654-4321-8FED-CBA987654321';
const DIFFERING_IN_CASE = ['AAAAAAAA-0000-4000-8000-000000000001', 'AAAAaaaa-0000-4000-8000-000000000001'];
const NO_UUIDS = ['NO-UUID', `{${UPPER}}`, UPPER.replaceAll('-', ''), `${UPPER}0`, `urn:uuid:${UPPER}`];

/** Creates a file of schema 4 with these ids, which that schema compared exactly. */
function openOld(ids: readonly string[], work: (ledger: Ledger, nameOf: (id: string) => string) => void = () => {}) {
  const ledger = openLedger();
  const names = new Map(ids.map((id, index) => [id, `row-${index}`]));
  const nameOf = (id: string) => names.get(id) ?? '';
  ledger.track(
    ids.map((id) => trackRequest(nameOf(id), { metadata: { id } })),
    1,
  );
  work(ledger, nameOf);
  ledger.close();
  const db = rawConnection(ledger.file);
  const rename = db.prepare('UPDATE submissions SET submission_id = ? WHERE submission_id = ?');
  for (const [id, name] of names) rename.run(id, name);
  revertTo(db, 4);
  db.close();
  return ledger.file;
}

const idsOf = (ledger: Ledger) =>
  ledger.search.list({ limit: 100 }).submissions.map(({ submissionId }) => submissionId);

describe('a ledger in which ids were compared exactly', () => {
  it('has its UUIDs in lower case after the migration, with their data; other ids are unchanged', () => {
    const file = openOld([ALONE, ...NO_UUIDS], (ledger, nameOf) => {
      ledger.record([observation('error', 20, nameOf(ALONE)), observation('finalized', 30, nameOf(ALONE))], context());
    });
    const events = outboxOf(file).map(({ id, type }) => ({ id, type }));
    const ledger = openLedger({ file });
    expect(idsOf(ledger)).toEqual([ALONE.toLowerCase(), ...NO_UUIDS].toReversed());
    for (const spelling of [ALONE, ALONE.toLowerCase()]) {
      expect(ledger.submissions.get(spelling)).toMatchObject({
        submissionId: ALONE.toLowerCase(),
        metadata: { id: ALONE },
      });
      expect(historyOf(ledger, spelling).map(({ status }) => status)).toEqual(['tracking', 'failing', 'finalized']);
    }
    expect(outboxOf(file)).toMatchObject(events);
    for (const id of NO_UUIDS) expect(ledger.submissions.get(id)?.submissionId).toBe(id);
    expect(ledger.submissions.get('no-uuid')).toBeUndefined();
    expect(integrityOf(file)).toBe('ok');
  });

  it('keeps ids that differ only in case apart: finds each by its spelling, and the lower-case one by any other', () => {
    const file = openOld([UPPER, LOWER, MIXED], (ledger, nameOf) => {
      ledger.record([observation('error', 20, nameOf(UPPER)), observation('pending', 20, nameOf(LOWER))], context());
      ledger.record([observation('finalized', 30, nameOf(UPPER))], context());
    });
    const ledger = openLedger({ file });
    const statuses = (id: string) => historyOf(ledger, id).map(({ status }) => status);
    expect(idsOf(ledger)).toEqual([MIXED, LOWER, UPPER]);
    expect(statuses(UPPER)).toEqual(['tracking', 'failing', 'finalized']);
    expect(statuses(LOWER)).toEqual(['tracking', 'pending']);
    expect(statuses(MIXED)).toEqual(['tracking']);
    const another = LOWER.replace('def0', 'DEF0');
    expect(ledger.submissions.get(another)).toEqual(ledger.submissions.get(LOWER));
    for (const id of [UPPER, LOWER, MIXED]) expect(isUnbroken(historyOf(ledger, id))).toBe(true);
    expect(integrityOf(file)).toBe('ok');
  });

  it('polls each of them to its end, and tracks none again', () => {
    const ledger = openLedger({ file: openOld([LOWER, UPPER]) });
    const { watched } = ledger.listWatched('default', { after: 0, limit: 10 });
    expect(watched.map(({ submissionId }) => submissionId)).toEqual([LOWER, UPPER]);
    ledger.record([observation('finalized', 30, UPPER)], context());
    expect([ledger.submissions.get(LOWER)?.status, ledger.submissions.get(UPPER)?.status]).toEqual([
      'tracking',
      'finalized',
    ]);
    const effectOf = (id: string) => ledger.track([trackRequest(id)], 40);
    expect(effectOf(LOWER)).toMatchObject({ submissions: [{ effect: 'already_tracked' }] });
    expect(effectOf(UPPER)).toMatchObject({ submissions: [{ effect: 'already_final' }] });
    ledger.cancel([LOWER], 50);
    expect(outboxOf(ledger.file)).toMatchObject([
      { type: 'submission.finalized', submission_id: UPPER },
      { type: 'submission.cancelled', submission_id: LOWER },
    ]);
  });

  it('renames one of several spellings with upper case to lower case', () => {
    const ledger = openLedger({ file: openOld(DIFFERING_IN_CASE) });
    const lower = DIFFERING_IN_CASE[0]?.toLowerCase() ?? '';
    expect(idsOf(ledger)).toHaveLength(2);
    expect(idsOf(ledger)).toContain(lower);
    const metadata = DIFFERING_IN_CASE.map((id) => ledger.submissions.get(id)?.metadata?.id);
    expect(new Set(metadata)).toEqual(new Set(DIFFERING_IN_CASE));
  });

  it('finds all of them by an upper-case prefix, and the lower-case one by a lower-case prefix', () => {
    const ledger = openLedger({ file: openOld([LOWER, UPPER, MIXED]) });
    const found = (prefix: string) =>
      ledger.search.list({ prefix, limit: 9 }).submissions.map(({ submissionId }) => submissionId);
    expect(found('ABCDEF')).toEqual([UPPER, LOWER]);
    expect(found('abcdef')).toEqual([LOWER]);
    expect(found('AbC')).toEqual([MIXED, LOWER]);
  });
});

it('deliveries are found by a UUID in any case', () => {
  const ledger = openLedger();
  ledger.routes.setChannels([{ name: 'all', subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 }]);
  ledger.track([trackRequest(LOWER), trackRequest('other')], 1);
  ledger.cancel([LOWER, 'other'], 2);
  for (const submissionId of [LOWER, UPPER, MIXED])
    expect(ledger.deliveries.list({ limit: 9, submissionId }).deliveries).toMatchObject([{ submissionId: LOWER }]);
});
