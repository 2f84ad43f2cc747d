import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { CommandError, ExitCode } from './exit.ts';

/**
 * Returns the content of a file, or of stdin for "-". Throws a CommandError if the file cannot be
 * read.
 */
export async function readText(file: string): Promise<string> {
  if (file === '-') return await text(process.stdin);
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CommandError(
      `cannot read ${file}: ${error instanceof Error ? error.message : error}`,
      ExitCode.usage,
    );
  }
}

/**
 * Reads a secret from a file or from stdin. An argument would be visible to other users of the
 * machine.
 */
export async function readSecret(file: string | undefined): Promise<{ secret?: string }> {
  if (file === undefined) return {};
  const secret = (await readText(file)).trim();
  if (secret === '')
    throw new CommandError(`${file === '-' ? 'stdin' : file} contains no secret`, ExitCode.usage);
  return { secret };
}
