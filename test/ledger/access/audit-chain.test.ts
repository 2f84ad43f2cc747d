import { describe, expect, it } from 'vitest';
import {
  CHAIN_START,
  type ChainedEntry,
  checkChain,
  entryHash,
  erasureDetail,
  personDigest,
  type StoredEntry,
} from '../../../src/ledger/access/audit-chain.ts';

const PERSON = { salt: 'ab'.repeat(32), emailHash: 'cd'.repeat(32), emailMasked: 'a…@example.com' };
const NO_PERSON = { salt: null, emailHash: null, emailMasked: null };

/** Five entries, the second and the third about a person. */
function chain(changes: Record<number, Partial<ChainedEntry>> = {}): StoredEntry[] {
  let previous = CHAIN_START;
  return [1, 2, 3, 4, 5].map((seq) => {
    const person = seq === 2 || seq === 3 ? PERSON : NO_PERSON;
    const entry = {
      seq,
      at: Date.UTC(2026, 0, 1, 0, 0, seq),
      caller: 'ä',
      credentialId: 3,
      address: null,
      action: 'users.get',
      result: 'found',
      subject: null,
      detail: `"${seq}"`,
      personDigest: person === PERSON ? personDigest(PERSON) : null,
      ...changes[seq],
    };
    previous = entryHash(previous, entry);
    return { ...entry, ...person, hash: previous };
  });
}

const headOf = (entries: readonly StoredEntry[]) => entries.at(-1)?.hash ?? CHAIN_START;

it('the hash of an entry never changes between versions', () => {
  expect(entryHash(CHAIN_START, chain()[0] as StoredEntry)).toBe(
    'fdc59740638232522270a40e2ccd7a66b747189e39af0339b1282fc884cf5397',
  );
  expect(personDigest(PERSON)).toBe('2c0520b8fbe50794073682b2cf9c61c8899748e74ac2893a7da5d55306723361');
});

describe('an intact chain', () => {
  it('is counted, with its head', async () => {
    expect(await checkChain(chain(), chain()[2]?.hash ?? '')).toEqual({
      kind: 'intact',
      entries: 5,
      head: headOf(chain()),
      erasedPersons: 0,
    });
    expect(await checkChain([])).toEqual({ kind: 'intact', entries: 0, head: CHAIN_START, erasedPersons: 0 });
  });

  it('stays intact when persons are erased and an erasure records it', async () => {
    const detail = erasureDetail({ submissions: 7, audit_persons: 2 });
    const entries = chain({ 5: { action: 'data.erase', detail } }).map((entry) => ({ ...entry, ...NO_PERSON }));
    expect(await checkChain(entries)).toMatchObject({ kind: 'intact', erasedPersons: 2 });
  });
});

describe('the check names the first wrong entry:', () => {
  const changed = (seq: number, change: Partial<StoredEntry>) =>
    chain().map((entry) => (entry.seq === seq ? { ...entry, ...change } : entry));

  it.each<[string, StoredEntry[], number]>([
    ['a changed time', changed(2, { at: 1 }), 2],
    ['a changed caller', changed(1, { caller: 'a' }), 1],
    ['a changed result', changed(3, { result: 'refused' }), 3],
    ['a changed subject', changed(3, { subject: 'x' }), 3],
    ['a time that is none', changed(4, { at: 1e300 }), 4],
    ['a removed hash', changed(5, { hash: null }), 5],
    ['another digest of the person', changed(2, { personDigest: 'ef'.repeat(32) }), 2],
    ['another person', changed(2, { emailMasked: 'b…@example.com' }), 2],
    ['a part of a person', changed(3, { salt: null }), 3],
    ['a person where none was', changed(4, PERSON), 4],
    ['a removed first entry', chain().slice(1), 2],
    ['a removed entry', chain().filter(({ seq }) => seq !== 3), 4],
    ['exchanged entries', [0, 2, 1, 3, 4].map((index) => chain()[index] as StoredEntry), 3],
    ['a repeated entry', [...chain(), chain()[4] as StoredEntry], 5],
  ])('%s', async (_what, entries, seq) => {
    expect(await checkChain(entries)).toMatchObject({ kind: 'broken', seq });
  });

  it('entries that were removed at the end are noticed by a head that was noted', async () => {
    const shorter = chain().slice(0, 3);
    expect(await checkChain(shorter)).toMatchObject({ kind: 'intact' });
    expect(await checkChain(shorter, headOf(chain()))).toMatchObject({ kind: 'broken', seq: null, entries: 3 });
  });

  it('a person that was removed without an erasure', async () => {
    const check = await checkChain(changed(2, NO_PERSON));
    expect(check).toMatchObject({ kind: 'broken', seq: null, reason: expect.stringContaining('1 entries') });
  });
});
