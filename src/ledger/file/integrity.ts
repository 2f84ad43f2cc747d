import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { realPath } from './open.ts';

export type Integrity =
  | { kind: 'sound' }
  | { kind: 'damaged'; detail: string }
  /** It could not be read to its end. */
  | { kind: 'failed'; detail: string };

const CHILD = fileURLToPath(new URL('./integrity-child.ts', import.meta.url));

/**
 * Whether the file is sound, beside a server too; only reads. `full`: its indexes as well. Reads the whole file, so it may
 * take minutes; rejects when the signal aborts.
 */
export async function checkIntegrity(
  file: string,
  { full, signal }: { full: boolean; signal: AbortSignal },
): Promise<Integrity> {
  const args = [CHILD, realPath(file), full ? 'integrity_check' : 'quick_check'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: {}, signal, killSignal: 'SIGKILL' });
  const said = JSON.parse(stdout) as { verdict: string } | { code: string; message: string };
  if ('verdict' in said) return said.verdict === 'ok' ? { kind: 'sound' } : { kind: 'damaged', detail: said.verdict };
  const isDamaged = /^SQLITE_(?:CORRUPT|NOTADB)/.test(said.code);
  return { kind: isDamaged ? 'damaged' : 'failed', detail: said.message };
}
