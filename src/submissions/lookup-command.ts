import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { ExitCode } from '../cli/exit.ts';
import { toJson } from '../cli/json.ts';
import { plural } from '../cli/table.ts';
import type { FoundSubmissions } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { readIds } from './cli-ids.ts';
import { submissionTable } from './list-command.ts';

const MAX_IDS = 1_000;

export function addLookup(program: Command): void {
  withServer(program.command('lookup'))
    .description(
      'Show the current state of many submissions, without their histories. Exits with 2 if one is not tracked.',
    )
    .argument(
      '[ids...]',
      'submission ids; without ids, they are read from --file or stdin, one per line',
    )
    .option('--file <file>', 'read ids from a file, one per line; - reads stdin')
    .option('--json', 'print JSON: the submissions, and the ids that are not tracked')
    .addHelpText(
      'after',
      "\nExample:\n  dawatch lookup --file ids.txt --json | jq -r '.not_found[]'",
    )
    .action(async (args: string[], options: ConnectOptions & { file?: string; json?: boolean }) => {
      const ids = await readIds(args, options.file);
      const client = connect(options);
      const found: FoundSubmissions = { submissions: [], not_found: [] };
      for (let start = 0; start < ids.length; start += MAX_IDS) {
        const part = await client.lookup(ids.slice(start, start + MAX_IDS));
        found.submissions.push(...part.submissions);
        found.not_found.push(...part.not_found);
      }
      process.stdout.write(
        options.json ? `${toJson(found)}\n` : submissionTable(found.submissions),
      );
      if (found.not_found.length === 0) return;
      process.exitCode = ExitCode.usage;
      if (options.json) return;
      const lines = found.not_found.map((id) => `  ${escapeText(id)}\n`);
      process.stderr.write(
        `dawatch: ${plural(lines.length, 'id')} not tracked:\n${lines.join('')}`,
      );
    });
}
