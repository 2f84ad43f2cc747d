import { hash } from 'node:crypto';

/** An entry of the audit, as stored or exported. `at`: epoch milliseconds. */
export type StoredEntry = {
  seq: number;
  at: number;
  caller: string;
  credentialId: number | null;
  address: string | null;
  action: string;
  result: string;
  subject: string | null;
  detail: string | null;
  /**
   * Keyed hash of the address of a looked-up person, and the masked address; null if the entry is
   * about no person.
   */
  emailHash: string | null;
  emailMasked: string | null;
  hash: string;
  /** The person behind the caller. It is in another table, so the hash does not cover it. */
  callerPerson?: string | null;
};

/** The content of an entry that its hash covers. */
export type ChainedEntry = Omit<StoredEntry, 'hash' | 'callerPerson'>;

/** The hash before that of the first entry. */
export const CHAIN_START = '0'.repeat(64);

/**
 * Returns the SHA-256, in hexadecimal, of the previous hash, a line feed, and the entry as a JSON
 * array without white space. Times are in ISO 8601 with milliseconds.
 */
export function entryHash(previous: string, entry: ChainedEntry): string {
  const {
    seq,
    at,
    caller,
    credentialId,
    address,
    action,
    result,
    subject,
    detail,
    emailHash,
    emailMasked,
  } = entry;
  const time = new Date(at).toISOString();
  const fields = [
    seq,
    time,
    caller,
    credentialId,
    address,
    action,
    result,
    subject,
    detail,
    emailHash,
    emailMasked,
  ];
  return hash('sha256', `${previous}\n${JSON.stringify(fields)}`);
}

/**
 * The result of checking a chain. `pruned`: number of entries that retention has deleted. `head`:
 * the hash of its last entry.
 */
export type ChainCheck =
  | { kind: 'intact'; entries: number; pruned: number; head: string }
  /**
   * `seq`: the first wrong entry; null if no single entry is wrong. `entries`: number of correct
   * entries before it.
   */
  | { kind: 'broken'; entries: number; seq: number | null; reason: string };

/**
 * Checks a complete chain, oldest entry first, in constant memory. If retention has deleted its
 * beginning, an entry `audit.prune` must have the number and the hash of the newest deleted entry.
 * `expectedHead`: the hash of an entry that must occur, such as an earlier head. The hash in an
 * entry `audit.prune` does not count, because whoever writes to the file can forge that entry.
 */
export async function checkChain(
  chain: Iterable<StoredEntry> | AsyncIterable<StoredEntry>,
  expectedHead?: string,
): Promise<ChainCheck> {
  let entries = 0;
  let first: StoredEntry | undefined;
  let previous = CHAIN_START;
  let isBeginningKnown = false;
  let isHeadFound = expectedHead === undefined;
  for await (const entry of chain) {
    const { seq, action, subject, detail } = entry;
    const broken = (reason: string): ChainCheck => ({ kind: 'broken', entries, seq, reason });
    first ??= entry;
    if (entry === first) isBeginningKnown = seq === 1;
    else if (seq !== first.seq + entries) return broken('entries before it are missing');
    const isRight = hashMatches(entry, isBeginningKnown || entries > 0 ? previous : undefined);
    if (!isRight) return broken('its hash does not match its content and the entry before it');
    if (action === 'audit.prune' && Number(subject) === first.seq - 1 && detail !== null)
      isBeginningKnown ||= hashMatches(first, detail);
    previous = entry.hash;
    isHeadFound ||= entry.hash === expectedHead;
    entries += 1;
  }
  const broken = (reason: string): ChainCheck => ({ kind: 'broken', entries, seq: null, reason });
  if (first && !isBeginningKnown)
    return broken(`the entries before ${first.seq} were removed without a record`);
  if (!isHeadFound)
    return broken(
      'no entry has the expected head: entries were removed or replaced, or it is older than the audit keeps',
    );
  return { kind: 'intact', entries, pruned: (first?.seq ?? 1) - 1, head: previous };
}

/** `previous` undefined: the entry before it is not known yet. */
function hashMatches(entry: StoredEntry, previous: string | undefined): boolean {
  const isTime = Number.isFinite(entry.at) && Math.abs(entry.at) <= 8.64e15;
  return isTime && (previous === undefined || entry.hash === entryHash(previous, entry));
}
