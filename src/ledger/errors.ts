export type LedgerProblem =
  /** The disk or the permitted size of the file is exhausted. */
  | 'full'
  /** The file or its folder cannot be written. */
  | 'read_only'
  /** The file is damaged or not a SQLite database. */
  | 'corrupt'
  /** The file is a database of another program or of a newer dawatch. */
  | 'foreign'
  /** Another process uses the file. */
  | 'locked'
  /** The disk failed. */
  | 'io';

/** The ledger cannot be used now. The transaction was rolled back; earlier commits are intact. */
export class LedgerError extends Error {
  override readonly name = 'LedgerError';
  readonly problem: LedgerProblem;

  constructor(problem: LedgerProblem, message: string, cause?: unknown) {
    super(message, { cause });
    this.problem = problem;
  }
}

const FIX =
  'it was left unchanged: restore a backup, or move it away to start with an empty ledger';

const MESSAGES: Record<Exclude<LedgerProblem, 'foreign'>, (file: string) => string> = {
  full: (file) => `no space left to write ${file}: free some space; committed data is intact`,
  read_only: (file) =>
    `cannot write ${file}: check that its folder exists and that this user may write there`,
  corrupt: (file) => `${file} is damaged or not a SQLite database; ${FIX}`,
  locked: (file) =>
    `another program has locked ${file}: find it with \`lsof ${file}\`, and end its transaction`,
  io: (file) => `the disk failed while using ${file}`,
};

/** Returns the error for a file that fails SQLite's check. `verdict`: the result of the check. */
export function damaged(file: string, verdict: string): LedgerError {
  return new LedgerError(
    'corrupt',
    `${file} is damaged (${verdict.replaceAll('\n', ' ')}); ${FIX}`,
  );
}

/** Returns the result of `work`. Converts errors of SQLite and the file system to LedgerError. */
export function guarded<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toLedgerError(file, error);
  }
}

/** Returns errors of other kinds as they are. */
export function toLedgerError(file: string, error: unknown): unknown {
  const problem = problemOf(error);
  return problem ? new LedgerError(problem, MESSAGES[problem](file), error) : error;
}

function problemOf(error: unknown): Exclude<LedgerProblem, 'foreign'> | undefined {
  const code = sqliteCodeOf(error);
  if (code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT') return 'full';
  if (
    code.startsWith('SQLITE_READONLY') ||
    code.startsWith('SQLITE_CANTOPEN') ||
    code.startsWith('SQLITE_PERM')
  )
    return 'read_only';
  if (['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ENOENT', 'EEXIST', 'EISDIR'].includes(code))
    return 'read_only';
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return 'corrupt';
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) return 'locked';
  if (code === 'EIO' || code.startsWith('SQLITE_IOERR')) return 'io';
  return undefined;
}

/** Returns the code of an error of SQLite or the system; an empty string if it has none. */
export function sqliteCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** A failed sync is reported only once: a retry would succeed although data is missing. */
export function isFailedSync(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return code === 'SQLITE_IOERR_FSYNC' || syscall === 'fsync' || syscall === 'fdatasync';
}

/** How long writes wait while another program has locked the ledger, and between two attempts. */
export const LOCKED_MS = { total: 5_000, rest: 150 } as const;

/** Whether another program has locked the ledger, so that a write is worth another attempt. */
export function isLocked(error: unknown): boolean {
  return error instanceof LedgerError && error.problem === 'locked';
}
