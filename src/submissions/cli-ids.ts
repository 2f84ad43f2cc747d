import { CommandError, ExitCode } from '../cli/exit.ts';
import { readText } from '../cli/input.ts';
import {
  canonicalId,
  REACHABLE_ID_PATTERN,
  SUBMISSION_ID_PATTERN,
  UNREACHABLE_ID_REASON,
} from './submission.ts';

/**
 * Returns the ids of the arguments and of the lines of a file or stdin, without duplicates; UUIDs
 * are compared ignoring case. Throws a CommandError if any id is invalid or there is none.
 */
export async function readIds(
  args: readonly string[],
  file: string | undefined,
): Promise<string[]> {
  const ids =
    args.length > 0 && file === undefined ? [...args] : (await readLines(file)).concat(args);
  const invalid = ids.findIndex((id) => !SUBMISSION_ID_PATTERN.test(id));
  if (invalid >= 0)
    throw new CommandError(
      `id ${invalid + 1}, ${JSON.stringify((ids[invalid] ?? '').slice(0, 150))}, is not a submission id: expected 1 to 128 printable ASCII characters without spaces`,
      ExitCode.usage,
    );
  const unreachable = ids.findIndex((id) => !REACHABLE_ID_PATTERN.test(id));
  if (unreachable >= 0)
    throw new CommandError(`id ${unreachable + 1}: ${UNREACHABLE_ID_REASON}`, ExitCode.usage);
  if (ids.length === 0)
    throw new CommandError('no ids were given: the file or stdin is empty', ExitCode.usage);
  return [...new Map(ids.map((id) => [canonicalId(id), id])).values()];
}

async function readLines(file: string | undefined): Promise<string[]> {
  if (file === undefined && process.stdin.isTTY)
    throw new CommandError('give ids as arguments, with --file, or on stdin', ExitCode.usage);
  const content = await readText(file ?? '-');
  return content
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
