import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { type ErasureTarget, type PersonalValue, personalValueOf } from '../../domain/audit/personal-value.ts';
import { countPerson } from '../access/audit.ts';
import { guarded } from '../file/errors.ts';
import { LedgerDatabase } from '../file/ledger-database.ts';
import { existingLedgerPath } from '../file/open.ts';
import { assertCurrentLedger } from '../file/schema.ts';
import { metadataGroups } from '../stats/report-rows.ts';

/** Where a ledger still has the value. */
export type ErasureCheck = {
  /** Rows with the value, by table and column. */
  rows: { table: string; column: string; rows: number }[];
  /** The searched files, including unused space in them and the write-ahead log. */
  files: { file: string; bytes: number; occurrences: number }[];
  /** Copies beside the ledger, which are not searched. */
  otherFiles: string[];
};

/** Longer than any escaped form of a value, which may lie across two chunks of a file. */
const OVERLAP_CHARS = 16 * 1024;
const CHUNK_BYTES = 1024 * 1024;

/**
 * Searches a ledger for the value of a target, in every row and in every byte of its files, also while a server uses it. Changes
 * nothing. Throws LedgerError.
 */
export async function checkErased(file: string, target: ErasureTarget): Promise<ErasureCheck> {
  const path = guarded(file, () => existingLedgerPath(file));
  const value = personalValueOf(target);
  const rows = rowsWith(path, value, target);
  const pattern =
    target.kind === 'metadata' ? new RegExp(`${value.bytes.source}|${indexed(target)}`, 'g') : value.bytes;
  // The connection is closed: closing a file that SQLite has open in the same process would release its locks.
  const files = [];
  for (const searched of [path, `${path}-wal`].filter((name) => existsSync(name)))
    files.push({
      file: searched,
      bytes: statSync(searched).size,
      occurrences: await countOccurrences(searched, pattern),
    });
  return { rows, files, otherFiles: copiesBeside(path) };
}

/** Whether neither a row nor a byte of the files has the value. */
export function isErased({ rows, files }: ErasureCheck): boolean {
  return rows.length === 0 && files.every(({ occurrences }) => occurrences === 0);
}

function rowsWith(path: string, value: PersonalValue, target: ErasureTarget): ErasureCheck['rows'] {
  const db = guarded(path, () => new Database(path, { readonly: true, fileMustExist: true }));
  try {
    guarded(path, () => assertCurrentLedger(db, path));
    const database = new LedgerDatabase(db, path);
    const found: ErasureCheck['rows'] = [];
    const columns = database.rows<{ table: string; column: string }>(TEXT_COLUMNS);
    for (const { table, column } of columns) {
      const isMetadata = table === 'submissions' && column === 'metadata';
      const has = isMetadata ? value.isInMetadata : value.isIn;
      let rows = 0;
      const texts = database.iterate<{ text: unknown }>(
        `SELECT "${column}" AS text FROM "${table}" WHERE "${column}" IS NOT NULL`,
      );
      for (const { text } of texts) if (has(String(text))) rows += 1;
      if (rows > 0) found.push({ table, column, rows });
    }
    const entries = target.kind === 'metadata' ? countEntries(database, target) : 0;
    if (entries > 0) found.push({ table: 'submission_metadata', column: 'value', rows: entries });
    const groups = target.kind === 'metadata' ? countGroups(database, value) : 0;
    if (groups > 0) found.push({ table: 'report_rows', column: 'value', rows: groups });
    const lookups = target.kind === 'email' ? countPerson(database, target.email) : 0;
    if (lookups > 0) found.push({ table: 'audit_persons', column: 'email_hash', rows: lookups });
    return found;
  } finally {
    db.close();
  }
}

function countGroups(database: LedgerDatabase, value: PersonalValue): number {
  let count = 0;
  for (const group of metadataGroups(database)) if (value.isGroup(group.key, group.value)) count += 1;
  return count;
}

type MetadataTarget = Extract<ErasureTarget, { kind: 'metadata' }>;

function countEntries(database: LedgerDatabase, { key, value }: MetadataTarget): number {
  return database.value<number>`SELECT count(*) FROM submission_metadata WHERE key = ${key} AND value = ${value}` ?? 0;
}

/**
 * Returns a pattern of the bytes, read as Latin-1, of a row of submission_metadata: the types of its three columns, then the key
 * and the value. The types of texts contain their lengths, and those of integers are below 10.
 */
function indexed({ key, value }: MetadataTarget): string {
  const texts = [key, value].map((text) => Buffer.from(text));
  const header = texts.flatMap(({ length }) => varint(2 * length + 13));
  const hex = (bytes: Iterable<number>) =>
    [...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
  return `${hex(header)}[\\x00-\\x09]${hex(Buffer.concat(texts))}`;
}

/** Returns an integer below 2^14 as SQLite stores it: 7 bits per byte, the high bit set in all bytes but the last. */
function varint(value: number): number[] {
  return value < 0x80 ? [value] : [0x80 | (value >> 7), value & 0x7f];
}

const TEXT_COLUMNS = `
  SELECT t.name AS "table", c.name AS "column" FROM pragma_table_list t JOIN pragma_table_info(t.name) c
  WHERE t.schema = 'main' AND t.type IN ('table', 'shadow') AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
    AND c.type IN ('TEXT', 'ANY', '')
  ORDER BY t.name, c.cid`;

async function countOccurrences(file: string, pattern: RegExp): Promise<number> {
  let count = 0;
  let rest = '';
  for await (const chunk of createReadStream(file, { highWaterMark: CHUNK_BYTES, encoding: 'latin1' })) {
    const text = rest + chunk;
    let end = Math.max(0, text.length - OVERLAP_CHARS);
    for (const match of text.matchAll(pattern)) {
      count += 1;
      end = Math.max(end, match.index + match[0].length);
    }
    rest = text.slice(end);
  }
  return count;
}

/** Returns files and folders beside the ledger that have the name of the ledger and a suffix, such as replaced ledgers. */
function copiesBeside(path: string): string[] {
  const folder = dirname(path);
  const names = readdirSync(folder).filter((name) => name.startsWith(`${basename(path)}.`) && !name.endsWith('.lock'));
  return names.map((name) => join(folder, name));
}
