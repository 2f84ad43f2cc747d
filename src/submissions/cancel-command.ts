import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { toJson } from '../cli/output.ts';
import { escapeText } from '../lib/text.ts';
import { readIds } from './cli-submissions.ts';

export function addCancel(program: Command): void {
  withServer(program.command('cancel'))
    .description('Stop tracking submissions. Final submissions are not changed.')
    .argument('<ids...>', 'submission ids')
    .option('--json', 'print one JSON line per submission')
    .addHelpText('after', '\nExample:\n  dawatch cancel 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11')
    .action(async (args: string[], options: ConnectOptions & { json?: boolean }) => {
      const ids = await readIds(args, undefined);
      const client = connect(options);
      for (const id of ids) {
        const submission = await client.cancel(id);
        const text = options.json
          ? toJson(submission)
          : escapeText(`${submission.status}  ${submission.submission_id}`);
        process.stdout.write(`${text}\n`);
      }
    });
}
