import { createReadStream } from 'node:fs';
import { CommandError, ExitCode } from './exit.ts';

/** Far above the size of a submission with a long history. */
const MAX_LINE_CHARS = 16 * 1024 * 1024;

/**
 * Yields the lines of a file, or of stdin for "-", without line ends and byte order mark, as they
 * are read. Throws a CommandError if the file cannot be read or is not text.
 */
export async function* readLines(file: string): AsyncGenerator<string, void> {
  const name = file === '-' ? 'stdin' : file;
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let count = 0;
  let rest = '';
  try {
    for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      count += lines.length;
      for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line;
      if (rest.length > MAX_LINE_CHARS)
        throw new CommandError(
          `${name} has more than ${MAX_LINE_CHARS} characters in line ${count + 1}`,
          ExitCode.usage,
        );
    }
    rest += decoder.decode();
  } catch (error) {
    if (error instanceof CommandError) throw error;
    // The decoder throws a TypeError.
    if (error instanceof TypeError)
      throw new CommandError(`${name} is not text in UTF-8`, ExitCode.usage);
    throw new CommandError(
      `cannot read ${name}: ${error instanceof Error ? error.message : error}`,
      ExitCode.usage,
    );
  }
  if (rest !== '') yield rest;
}
