import { execFile } from 'node:child_process';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { realPath } from './open.ts';

export type Integrity =
  | { kind: 'sound' }
  | { kind: 'damaged'; detail: string }
  /** The file could not be read completely. */
  | { kind: 'failed'; detail: string };

/** The child is a source file in a checkout, and compiled in the package. */
const CHILD = join(import.meta.dirname, `integrity-child${extname(import.meta.filename)}`);

/**
 * Checks the integrity of a ledger that a server may be using. `full`: checks the indexes, too.
 * Reads the whole file, which may take minutes. Rejects when the signal aborts.
 */
export async function checkIntegrity(
  file: string,
  { full, signal }: { full: boolean; signal: AbortSignal },
): Promise<Integrity> {
  const args = [CHILD, realPath(file), full ? 'integrity_check' : 'quick_check'];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: {},
    signal,
    killSignal: 'SIGKILL',
  });
  const result = JSON.parse(stdout) as { verdict: string } | { code: string; message: string };
  if ('verdict' in result)
    return result.verdict === 'ok'
      ? { kind: 'sound' }
      : { kind: 'damaged', detail: result.verdict };
  const isDamaged = /^SQLITE_(?:CORRUPT|NOTADB)/.test(result.code);
  return { kind: isDamaged ? 'damaged' : 'failed', detail: result.message };
}
