import type { Command } from 'commander';
import type { TrackOptions } from '../../../client/index.ts';
import { escapeText } from '../../../domain/text.ts';
import { awaitFinal } from '../../await-final.ts';
import { type ConnectOptions, connect, withServer } from '../../connect.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { parseDuration } from '../../input/duration.ts';
import { parseObject } from '../../input/json-object.ts';
import { readSubmissions } from '../../input/submission-lines.ts';
import { toJson } from '../../output/json.ts';
import { plural } from '../../output/table.ts';
import { type Total, trackInBatches } from '../../track-in-batches.ts';

type Options = ConnectOptions & {
  file?: string;
  upstream?: string;
  deadline?: number;
  metadata?: Record<string, unknown>;
  retrack?: boolean;
  wait?: boolean;
  timeout?: number;
  json?: boolean;
};

export function addTrack(program: Command): void {
  withServer(program.command('track'))
    .description('Track submissions until they are final.')
    .argument('[ids...]', 'submission ids; without ids, submissions are read from --file or stdin')
    .option('--file <file>', 'read submissions from a file: ids, NDJSON, CSV or an export; - reads stdin')
    .option('--upstream <name>', 'name of a configured upstream')
    .option(
      '--deadline <duration>',
      'time limit for finality: 90s, 10m, 24h, 7d (default: what the server is set to)',
      parseDuration,
    )
    .option('--metadata <json>', 'JSON object stored with the submission', parseObject)
    .option('--retrack', 'track ids again that ended as failed, unknown, rejected, expired or cancelled')
    .option('--wait', 'wait until all submissions are final')
    .option('--timeout <duration>', 'with --wait: maximum time to wait: 90s, 10m (default: no limit)', parseDuration)
    .option('--json', 'print JSON: one object, or with --wait one line per ended submission')
    .addHelpText(
      'after',
      `
A file has one submission per line: its id; a JSON object with submission_id and options (upstream, deadline, unknown_grace_s,
stuck_after_s, metadata, callback_url, tracked_at); or the values of the columns that the first line names, separated by commas.
Blank lines and lines that begin with # are ignored. The options of the command apply to lines that do not set them. The output
of \`dawatch export\` is accepted: its open submissions are tracked, the final ones are skipped.

Ids that are already tracked are unchanged. Without --wait, the exit code is 3 if any id had already ended and is not
tracked again. With --wait, it depends on the final statuses of all ids.

Examples:
  dawatch track 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11
  dawatch track --file ids.txt --wait --timeout 10m
  dawatch track --retrack 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11 --deadline 48h
  dawatch track --file submissions.csv --metadata '{"batch": 7}'
  dawatch export | dawatch track --server https://new.example --file -
  submit-everything | dawatch track --wait --json > final.ndjson`,
    )
    .action(async (args: string[], options: Options) => {
      if (options.timeout !== undefined && !options.wait)
        throw new CommandError('--timeout requires --wait', ExitCode.usage);
      const { submissions, skipped } = await readSubmissions(args, options, Date.now());
      const client = connect(options);
      const total = await trackInBatches(client, submissions, toTrackOptions(options));
      if (options.json && !options.wait)
        process.stdout.write(`${toJson({ ...total, ...(skipped > 0 && { skipped_final: skipped }) })}\n`);
      else process.stderr.write(describe(total, skipped));
      if (!options.wait) {
        if (total.already_final > 0) process.exitCode = ExitCode.notFinalized;
        return;
      }
      const ids = submissions.map(({ item }) => item.submission_id);
      process.exitCode = await awaitFinal(client, ids, { timeoutMs: options.timeout, json: options.json ?? false });
    });
}

function describe(
  { accepted, already_tracked, already_final, retracked, not_applied }: Total,
  skipped: number,
): string {
  const counts = [`accepted ${accepted}`, `already tracked ${already_tracked}`];
  if (already_final > 0) counts.push(`already final ${already_final}`);
  if (retracked > 0) counts.push(`retracked ${retracked}`);
  if (skipped > 0) counts.push(`skipped ${skipped} final`);
  const names = [...new Set(not_applied.flatMap(({ options }) => options))].join(', ');
  const unchanged = `other options are unchanged for ${plural(not_applied.length, 'submission')}: ${escapeText(names)}\n`;
  return `${counts.join(', ')}\n${not_applied.length > 0 ? unchanged : ''}`;
}

function toTrackOptions({ upstream, deadline, metadata, retrack }: Options): TrackOptions {
  return {
    ...(upstream !== undefined && { upstream }),
    ...(deadline !== undefined && { deadline: new Date(Date.now() + deadline).toISOString() }),
    ...(metadata !== undefined && { metadata }),
    ...(retrack !== undefined && { retrack }),
  };
}
