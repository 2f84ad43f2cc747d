import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import {
  canonicalId,
  REACHABLE_ID_PATTERN,
  SUBMISSION_ID_PATTERN,
  UNREACHABLE_ID_REASON,
} from '../../domain/submission.ts';
import { CommandError, ExitCode } from '../exit.ts';

/** Ids as arguments, or one per line of a file, or of stdin; each once, in whatever case a UUID is. Refuses all of them if one can't be an id. */
export async function readIds(args: readonly string[], file: string | undefined): Promise<string[]> {
  const ids = args.length > 0 && file === undefined ? [...args] : (await readLines(args, file)).concat(args);
  const bad = ids.findIndex((id) => !SUBMISSION_ID_PATTERN.test(id));
  if (bad >= 0)
    throw new CommandError(
      `id ${bad + 1}, ${JSON.stringify((ids[bad] ?? '').slice(0, 150))}, can't be a submission id: 1 to 128 printable ASCII characters without spaces`,
      ExitCode.usage,
    );
  const unreachable = ids.findIndex((id) => !REACHABLE_ID_PATTERN.test(id));
  if (unreachable >= 0) throw new CommandError(`id ${unreachable + 1}: ${UNREACHABLE_ID_REASON}`, ExitCode.usage);
  if (ids.length === 0) throw new CommandError('no ids were given: the file, or stdin, has none', ExitCode.usage);
  return [...new Map(ids.map((id) => [canonicalId(id), id])).values()];
}

async function readLines(args: readonly string[], file: string | undefined): Promise<string[]> {
  if (file === undefined && args.length === 0 && process.stdin.isTTY)
    throw new CommandError('give ids as arguments, with --file, or on stdin', ExitCode.usage);
  const content = file === undefined || file === '-' ? await text(process.stdin) : readFile(file);
  return content
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CommandError(`can't read ${file}: ${error instanceof Error ? error.message : error}`, ExitCode.usage);
  }
}
