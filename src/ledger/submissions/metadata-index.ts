import { SEARCHABLE } from '../../domain/tracking/searchable.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';

/** The metadata of a new submission. `id`: its row; `text`: the stored JSON. */
export type AddedMetadata = { id: number; metadata: Readonly<Record<string, unknown>>; text: string };

/** Entries per statement. */
const PER_STATEMENT = 64;
const COLUMNS = 3;
/** Maximum number of names that are collected before they are written, to limit memory. Clients usually have few names. */
const MAX_NAMES = 2_000;

type Values = Map<string, { value: string; submission: number }[]>;

/**
 * The index of the metadata by value, in the table submission_metadata: the values within SEARCHABLE as text. Triggers maintain it
 * when metadata are changed or deleted. Methods must be called inside a transaction.
 */
export class MetadataIndex {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /**
   * Adds the entries of new submissions in the order of the index, so that many of them change each of its pages once. A trigger
   * that parses the metadata of each row takes several times as long.
   */
  add(added: readonly AddedMetadata[]): void {
    /** By name, in the order of the submissions. */
    const values: Values = new Map();
    for (const { id, metadata, text } of added) {
      // SQLite and JavaScript decode escaped characters differently, and the triggers must find the entries that they delete.
      if (text.includes('\\')) this.#db.run(ADD_ESCAPED, { id, text });
      else for (const [key, value] of searchable(metadata)) addTo(values, key, { value, submission: id });
      if (values.size < MAX_NAMES) continue;
      this.#addSorted(values);
      values.clear();
    }
    this.#addSorted(values);
  }

  #addSorted(values: Values): void {
    let some: unknown[] = [];
    for (const key of [...values.keys()].sort()) {
      // The sort is stable.
      for (const { value, submission } of values.get(key)?.sort(byValue) ?? []) {
        some.push(key, value, submission);
        if (some.length < COLUMNS * PER_STATEMENT) continue;
        this.#db.run(ADD_MANY, some);
        some = [];
      }
    }
    for (let at = 0; at < some.length; at += COLUMNS) this.#db.run(ADD_ONE, some.slice(at, at + COLUMNS));
  }
}

function searchable(metadata: Readonly<Record<string, unknown>>): [key: string, value: string][] {
  const found: [string, string][] = [];
  for (const [key, value] of Object.entries(metadata)) {
    if (found.length === SEARCHABLE.names) break;
    if (typeof value === 'object' && value !== null) continue;
    const isKey = key !== '' && isWithin(key, SEARCHABLE.nameBytes);
    if (typeof value !== 'string') {
      if (isKey) found.push([key, JSON.stringify(value)]);
    } else if (isKey && isWithin(value, SEARCHABLE.valueBytes)) found.push([key, value]);
  }
  return found;
}

/** A character takes at most three bytes. */
function isWithin(text: string, maxBytes: number): boolean {
  return 3 * text.length <= maxBytes || Buffer.byteLength(text) <= maxBytes;
}

function byValue(a: { value: string }, b: { value: string }): number {
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}

function addTo(values: Values, key: string, item: { value: string; submission: number }): void {
  const known = values.get(key);
  if (known) known.push(item);
  else values.set(key, [item]);
}

const [ADD_ONE, ADD_MANY] = [1, PER_STATEMENT].map(
  (count) =>
    `INSERT OR IGNORE INTO submission_metadata (key, value, submission) VALUES ${Array(count).fill('(?, ?, ?)').join(', ')}`,
) as [string, string];

/** Adds the entries of one submission in the same way as the triggers. */
const ADD_ESCAPED = `
  INSERT OR IGNORE INTO submission_metadata
  SELECT key, CASE type WHEN 'text' THEN value ELSE @text -> fullkey END, @id FROM json_each(@text)
  WHERE type NOT IN ('object', 'array') AND octet_length(key) BETWEEN 1 AND ${SEARCHABLE.nameBytes}
    AND (type <> 'text' OR octet_length(value) <= ${SEARCHABLE.valueBytes})
  LIMIT ${SEARCHABLE.names}`;
