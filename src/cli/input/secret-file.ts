import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { CommandError, ExitCode } from '../exit.ts';

/** A secret from a file, or from stdin if that is "-": never from an argument, which others see. */
export async function readSecret(file: string | undefined): Promise<{ secret?: string }> {
  if (file === undefined) return {};
  const secret = (file === '-' ? await text(process.stdin) : readText(file)).trim();
  if (secret === '') throw new CommandError(`there is no secret in ${file === '-' ? 'stdin' : file}`, ExitCode.usage);
  return { secret };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CommandError(`can't read ${file}: ${error instanceof Error ? error.message : error}`, ExitCode.usage);
  }
}
