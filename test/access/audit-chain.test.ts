import { describe, expect, it } from 'vitest';
import {
  CHAIN_START,
  type ChainedEntry,
  checkChain,
  entryHash,
  type StoredEntry,
} from '../../src/access/audit-chain.ts';

const PERSON = { emailHash: 'cd'.repeat(32), emailMasked: 'a…@example.com' };
const NO_PERSON = { emailHash: null, emailMasked: null };

/** Five entries, the second and the third about a person. */
function chain(changes: Record<number, Partial<ChainedEntry>> = {}): StoredEntry[] {
  let previous = CHAIN_START;
  return [1, 2, 3, 4, 5].map((seq) => {
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
      ...(seq === 2 || seq === 3 ? PERSON : NO_PERSON),
      ...changes[seq],
    };
    previous = entryHash(previous, entry);
    return { ...entry, hash: previous };
  });
}

const headOf = (entries: readonly StoredEntry[]) => entries.at(-1)?.hash ?? CHAIN_START;

/** The chain after retention has deleted the first two entries, which the fourth records. */
function pruned(record: Partial<ChainedEntry> = {}): StoredEntry[] {
  const deleted = chain()[1]?.hash ?? '';
  return chain({ 4: { action: 'audit.prune', subject: '2', detail: deleted, ...record } }).slice(2);
}

it('the hash of an entry never changes between versions', () => {
  expect(entryHash(CHAIN_START, chain()[1] as StoredEntry)).toBe(
    '163df5687dacb2f3da6fbe28e0244b0ccf77e0eab748556c13ae05f90c50d278',
  );
});

describe('an intact chain', () => {
  it('is counted, with its head', async () => {
    const intact = { kind: 'intact', entries: 5, pruned: 0, head: headOf(chain()) };
    expect(await checkChain(chain(), chain()[2]?.hash ?? '')).toEqual(intact);
    expect(await checkChain([])).toEqual({
      kind: 'intact',
      entries: 0,
      pruned: 0,
      head: CHAIN_START,
    });
  });

  it('stays intact when retention deletes its beginning and records that', async () => {
    expect(await checkChain(pruned())).toMatchObject({ kind: 'intact', entries: 3, pruned: 2 });
  });
});

describe('the check names the first wrong entry:', () => {
  const changed = (seq: number, change: Partial<StoredEntry>) =>
    chain().map((entry) => (entry.seq === seq ? { ...entry, ...change } : entry));

  it.each<[string, StoredEntry[], number | null]>([
    ['a changed time', changed(2, { at: 1 }), 2],
    ['a changed caller', changed(1, { caller: 'a' }), 1],
    ['a changed result', changed(3, { result: 'refused' }), 3],
    ['a changed subject', changed(3, { subject: 'x' }), 3],
    ['a time that is none', changed(4, { at: 1e300 }), 4],
    ['another hash', changed(5, { hash: 'ef'.repeat(32) }), 5],
    ['another person', changed(2, { emailMasked: 'b…@example.com' }), 2],
    ['a removed person', changed(3, NO_PERSON), 3],
    ['a person where none was', changed(4, PERSON), 4],
    ['a removed entry', chain().filter(({ seq }) => seq !== 3), 4],
    ['exchanged entries', [0, 2, 1, 3, 4].map((index) => chain()[index] as StoredEntry), 3],
    ['a repeated entry', [...chain(), chain()[4] as StoredEntry], 5],
    ['a removed entry after a deletion', pruned().filter(({ seq }) => seq !== 4), 5],
    ['a removed beginning without a record', chain().slice(1), null],
    ['a removed beginning with a record of fewer entries', pruned({ subject: '1' }), null],
    [
      'a removed beginning with another hash in its record',
      pruned({ detail: 'ef'.repeat(32) }),
      null,
    ],
  ])('%s', async (_what, entries, seq) => {
    expect(await checkChain(entries)).toMatchObject({ kind: 'broken', seq });
  });

  it('recent entries that a forged record calls pruned are noticed by a head that was noted', async () => {
    const head = chain()[1]?.hash ?? '';
    expect(await checkChain(pruned(), head)).toMatchObject({ kind: 'broken', seq: null });
  });

  it('entries that were removed at the end are noticed by a head that was noted', async () => {
    const shorter = chain().slice(0, 3);
    expect(await checkChain(shorter)).toMatchObject({ kind: 'intact' });
    expect(await checkChain(shorter, headOf(chain()))).toMatchObject({ kind: 'broken', seq: null });
  });
});
