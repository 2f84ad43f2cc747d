// Imports nothing, because disk-thread.ts uses it.

/** The error of a sync as one thread sends it to another, which keeps no other field of it. */
export type FailedSync = { message: string; code: string | undefined };

export function toFailedSync(error: unknown): FailedSync {
  const { message, code } = error as NodeJS.ErrnoException;
  return { message, code };
}

/**
 * Whether SQLite could not sync a file. The system reports that only once, and may have dropped
 * what it could not write: another attempt would succeed although data is missing.
 */
export function isFailedSync(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'SQLITE_IOERR_FSYNC';
}
