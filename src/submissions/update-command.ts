import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { parseDuration, parseObject } from '../cli/input.ts';
import { toJson } from '../cli/output.ts';
import type { SubmissionPatch } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { readIds } from './cli-submissions.ts';

/** Removes an option. */
const NONE = 'none';

type Options = ConnectOptions & {
  deadline?: number;
  unknownGrace?: number;
  stuckAfter?: number;
  metadata?: Record<string, unknown> | typeof NONE;
  callbackUrl?: string;
  dataHash?: string;
  json?: boolean;
};

export function addUpdateSubmissions(program: Command): void {
  withServer(program.command('update'))
    .description(
      'Change options of submissions. The time limits of a submission that has ended cannot be changed.',
    )
    .argument('<ids...>', 'submission ids')
    .option(
      '--deadline <duration>',
      'new time limit for finality, from now on: 90s, 10m, 24h, 7d (default: unchanged)',
      parseDuration,
    )
    .option(
      '--unknown-grace <duration>',
      'how long "not found" means "not yet", since tracking began; at least 120s apply (default: unchanged)',
      parseDuration,
    )
    .option(
      '--stuck-after <duration>',
      'when it is reported as stuck, since tracking began (default: unchanged)',
      parseDuration,
    )
    .option(
      '--metadata <json>',
      'JSON object that replaces the metadata; none removes it',
      parseMetadata,
    )
    .option('--callback-url <url>', 'URL that receives the events; none stops sending them')
    .option('--data-hash <hash>', 'BLAKE2b-256 hash of the submitted data; none requires no hash')
    .option('--json', 'print one JSON line per submission')
    .addHelpText(
      'after',
      `
Examples:
  dawatch update 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11 --deadline 48h
  dawatch update 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11 --metadata '{"order":4711}' --callback-url none`,
    )
    .action(async (args: string[], options: Options) => {
      const patch = toPatch(options);
      if (Object.keys(patch).length === 0)
        throw new CommandError(
          'nothing to change: give at least one option, such as --deadline',
          ExitCode.usage,
        );
      const ids = await readIds(args, undefined);
      const client = connect(options);
      for (const id of ids) {
        const submission = await client.update(id, patch);
        const text = options.json
          ? toJson(submission)
          : escapeText(
              `${submission.status}  ${submission.submission_id}  deadline ${submission.deadline_at}`,
            );
        process.stdout.write(`${text}\n`);
      }
    });
}

function parseMetadata(text: string): Record<string, unknown> | typeof NONE {
  return text === NONE ? NONE : parseObject(text);
}

function toPatch({
  deadline,
  unknownGrace,
  stuckAfter,
  metadata,
  callbackUrl,
  dataHash,
}: Options): SubmissionPatch {
  return {
    ...(deadline !== undefined && { deadline: new Date(Date.now() + deadline).toISOString() }),
    ...(unknownGrace !== undefined && { unknown_grace_s: unknownGrace / 1_000 }),
    ...(stuckAfter !== undefined && { stuck_after_s: stuckAfter / 1_000 }),
    ...(metadata !== undefined && { metadata: metadata === NONE ? null : metadata }),
    ...(callbackUrl !== undefined && { callback_url: callbackUrl === NONE ? null : callbackUrl }),
    ...(dataHash !== undefined && { data_hash: dataHash === NONE ? null : dataHash }),
  };
}

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
