import Database from 'better-sqlite3';
import { LedgerUnavailableError } from '../../watch/ports.ts';

export type LedgerProblem =
  /** The disk, or the size the file may have, is used up. */
  | 'full'
  /** The file or its folder can't be written. */
  | 'read_only'
  /** The file is damaged, or no SQLite database. */
  | 'corrupt'
  /** A database of another program, or of a newer dawatch. */
  | 'foreign'
  /** Another process has it. */
  | 'locked'
  /** The disk failed. */
  | 'io';

/** The ledger can't do its work. Nothing of the transaction was kept; everything committed before is still there. */
export class LedgerError extends LedgerUnavailableError {
  override readonly name = 'LedgerError';
  readonly problem: LedgerProblem;

  constructor(problem: LedgerProblem, message: string, cause?: unknown) {
    super(message, { cause });
    this.problem = problem;
  }
}

const MEND = 'it was left as it is: restore a backup, or move it away to start anew';

const MESSAGES: Record<Exclude<LedgerProblem, 'foreign'>, (file: string) => string> = {
  full: (file) => `no room left to write ${file}: free some space; nothing committed is lost`,
  read_only: (file) => `cannot write ${file}: check that its folder exists and that this user may write there`,
  corrupt: (file) => `${file} is damaged or no SQLite database; ${MEND}`,
  locked: (file) => `${file} is in use by another dawatch: one server per ledger; stop it first`,
  io: (file) => `the disk failed while using ${file}`,
};

/** What SQLite found when it looked through the file, in one line. */
export function damaged(file: string, verdict: string): LedgerError {
  return new LedgerError('corrupt', `${file} is damaged (${verdict.replaceAll('\n', ' ')}); ${MEND}`);
}

/** Runs `work` on the ledger's file; what SQLite or the file system throws comes out as a LedgerError. */
export function guarded<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toLedgerError(file, error);
  }
}

/** What SQLite or the file system threw, as a LedgerError; anything else as it is. */
export function toLedgerError(file: string, error: unknown): unknown {
  const problem = problemOf(error);
  return problem ? new LedgerError(problem, MESSAGES[problem](file), error) : error;
}

function problemOf(error: unknown): Exclude<LedgerProblem, 'foreign'> | undefined {
  const code = codeOf(error);
  if (code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT') return 'full';
  if (code.startsWith('SQLITE_READONLY') || code.startsWith('SQLITE_CANTOPEN') || code.startsWith('SQLITE_PERM'))
    return 'read_only';
  if (['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ENOENT', 'EEXIST', 'EISDIR'].includes(code)) return 'read_only';
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return 'corrupt';
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) return 'locked';
  if (error instanceof Database.SqliteError && code.startsWith('SQLITE_IOERR')) return 'io';
  return undefined;
}

/** The code that SQLite or the system gives an error; empty: it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
