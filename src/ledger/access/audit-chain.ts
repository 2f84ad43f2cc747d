import { hash } from 'node:crypto';
import { isTime } from '../../domain/stored.ts';

/** The content of an audit entry that its hash covers. `at`: epoch milliseconds. */
export type ChainedEntry = {
  seq: number;
  at: number;
  caller: string;
  credentialId: number | null;
  address: string | null;
  action: string;
  result: string;
  subject: string | null;
  detail: string | null;
  /** `personDigest` of the person whom the entry concerns; null if it concerns no person. */
  personDigest: string | null;
};

/** The part of an entry that identifies a person. It can be erased: the entry has only its salted digest. */
export type AuditedPerson = { salt: string; emailHash: string; emailMasked: string };

/** The hash before that of the first entry. */
export const CHAIN_START = '0'.repeat(64);

/**
 * Returns the SHA-256, in hexadecimal, of the previous hash, a line feed, and the entry as a JSON array without white space. Times
 * are in ISO 8601 with milliseconds.
 */
export function entryHash(previous: string, entry: ChainedEntry): string {
  const { seq, at, caller, credentialId, address, action, result, subject, detail, personDigest: digest } = entry;
  const time = isTime(at) ? new Date(at).toISOString() : String(at);
  const fields = [seq, time, caller, credentialId, address, action, result, subject, detail, digest];
  return hash('sha256', `${previous}\n${JSON.stringify(fields)}`);
}

/** Returns the SHA-256, in hexadecimal, of the salt, a line feed, and the other fields as a JSON array without white space. */
export function personDigest({ salt, emailHash, emailMasked }: AuditedPerson): string {
  return hash('sha256', `${salt}\n${JSON.stringify([emailHash, emailMasked])}`);
}

/**
 * An entry as stored or exported. The fields of the person are null if the entry is about no person, or if they were erased.
 * `callerPerson`: the person behind the caller. It is in another table, so the hash does not cover it.
 */
export type StoredEntry = ChainedEntry & { [Field in keyof AuditedPerson]: AuditedPerson[Field] | null } & {
  hash: string | null;
  callerPerson?: string | null;
};

/** The result of checking a chain. `head`: the hash of its last entry. */
export type ChainCheck =
  | { kind: 'intact'; entries: number; head: string; erasedPersons: number }
  /** `seq`: the first wrong entry; null if no single entry is wrong. `entries`: number of correct entries before it. */
  | { kind: 'broken'; entries: number; seq: number | null; reason: string };

/** The number of entries whose person was erased, in the `detail` of an erasure. */
const ERASED_PERSONS = /(?:^|, )audit_persons (\d+)/;

/** Returns the `detail` of an erasure: how many rows of each table were erased. */
export function erasureDetail(erased: Readonly<Record<string, number>>): string {
  return Object.entries(erased)
    .map(([table, count]) => `${table} ${count}`)
    .join(', ');
}

/**
 * Checks a complete chain, oldest entry first, in constant memory. `expectedHead`: the hash of an entry that must occur, such as an
 * earlier head.
 */
export async function checkChain(
  chain: Iterable<StoredEntry> | AsyncIterable<StoredEntry>,
  expectedHead?: string,
): Promise<ChainCheck> {
  const check = new ChainChecker(expectedHead);
  for await (const entry of chain) {
    const reason = check.add(entry);
    if (reason !== undefined) return { kind: 'broken', entries: check.entries, seq: entry.seq, reason };
  }
  return check.end();
}

class ChainChecker {
  entries = 0;
  readonly #expectedHead: string | undefined;
  #previous = CHAIN_START;
  #isHeadFound: boolean;
  #erasedPersons = 0;
  #recordedErasures = 0;

  constructor(expectedHead: string | undefined) {
    this.#expectedHead = expectedHead;
    this.#isHeadFound = expectedHead === undefined;
  }

  /** Returns the reason why the entry is wrong; undefined if it is correct. */
  add(entry: StoredEntry): string | undefined {
    const { hash: stored, action, detail } = entry;
    if (stored === null) return 'it has no hash';
    if (stored !== entryHash(this.#previous, entry))
      return 'its hash does not match its content and the entry before it';
    const personProblem = this.#addPerson(entry);
    if (personProblem !== undefined) return personProblem;
    if (action === 'data.erase') this.#recordedErasures += Number(ERASED_PERSONS.exec(detail ?? '')?.[1] ?? 0);
    this.#previous = stored;
    this.#isHeadFound ||= stored === this.#expectedHead;
    this.entries += 1;
    return undefined;
  }

  end(): ChainCheck {
    const { entries } = this;
    const broken = (reason: string): ChainCheck => ({ kind: 'broken', entries, seq: null, reason });
    if (!this.#isHeadFound)
      return broken('no entry has the expected head: the newest entries were removed or replaced');
    const unrecorded = this.#erasedPersons - this.#recordedErasures;
    if (unrecorded > 0) return broken(`the persons of ${unrecorded} entries were removed without an erasure`);
    return { kind: 'intact', entries, head: this.#previous, erasedPersons: this.#erasedPersons };
  }

  #addPerson({ salt, emailHash, emailMasked, personDigest: digest }: StoredEntry): string | undefined {
    if (salt === null && emailHash === null && emailMasked === null) {
      if (digest !== null) this.#erasedPersons += 1;
      return undefined;
    }
    const isComplete = salt !== null && emailHash !== null && emailMasked !== null;
    const isRight = isComplete && digest === personDigest({ salt, emailHash, emailMasked });
    return isRight ? undefined : 'its person does not match its digest';
  }
}
