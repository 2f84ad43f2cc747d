import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { parseDuration, parseObject } from '../cli/input.ts';
import { createProgress, toJson } from '../cli/output.ts';
import { pause } from '../client/backoff.ts';
import { ApiError } from '../client/errors.ts';
import type { DawatchClient, Tracked, TrackItem, TrackOptions } from '../client/index.ts';
import { partsOf } from '../client/track.ts';
import { escapeText } from '../lib/text.ts';
import {
  type CountByStatus,
  countStatus,
  type GivenSubmission,
  readIds,
  readSubmissions,
} from './cli-submissions.ts';
import type { TrackEffect } from './store-results.ts';
import { isFinal, type TrackOption } from './submission.ts';
import { awaitFinal } from './wait-command.ts';

const BUSY: readonly number[] = [429, 503];
const MAX_BUSY_MS = 120_000;

type Total = Record<TrackEffect, number> & {
  kept_options: TrackOption[];
  final_statuses: CountByStatus;
};

/** Tracks the submissions in requests of limited size and returns the sums of their counts. */
async function trackInBatches(
  client: DawatchClient,
  given: readonly GivenSubmission[],
  options: TrackOptions,
): Promise<Total> {
  const counts = { accepted: 0, already_tracked: 0, already_final: 0, retracked: 0 };
  const total: Total = { ...counts, kept_options: [], final_statuses: {} };
  // All that were listed are final.
  if (given.length === 0) return total;
  const itemOf = ({ item }: GivenSubmission) => item;
  const progress = createProgress(given.length, 'tracked', process.stderr);
  let done = 0;
  try {
    for (const batch of partsOf(given, { options, itemOf })) {
      add(await track(client, batch, options), total);
      done += batch.length;
      if (done < given.length) progress.advance(done);
    }
  } catch (error) {
    if (done > 0)
      progress.line(
        `${done} of ${given.length} submissions are tracked. To continue, run the same command again: they stay unchanged`,
      );
    throw error;
  } finally {
    progress.stop();
  }
  return total;
}

function add(tracked: Tracked, total: Total): void {
  for (const name of ['accepted', 'already_tracked', 'already_final', 'retracked'] as const)
    total[name] += tracked[name];
  total.kept_options = [...new Set([...total.kept_options, ...tracked.kept_options])];
  for (const { status } of tracked.submissions)
    if (isFinal(status)) countStatus(total.final_statuses, status);
}

/** Retries while the server is busy: it then accepts no part of the batch and sends Retry-After. */
async function track(
  client: DawatchClient,
  batch: readonly GivenSubmission[],
  options: TrackOptions,
): Promise<Tracked> {
  const isPlain = batch.every(({ item }) => Object.keys(item).length === 1);
  const submissions = batch.map(({ item }) => (isPlain ? item.submission_id : (item as TrackItem)));
  for (const startedAt = performance.now(); ; ) {
    try {
      return await client.track(submissions, options);
    } catch (error) {
      const waitMs =
        error instanceof ApiError && BUSY.includes(error.status)
          ? 1_000 * (error.retryAfterS ?? 0)
          : 0;
      if (waitMs === 0 || performance.now() + waitMs - startedAt > MAX_BUSY_MS)
        throw located(error, batch);
      await pause(waitMs);
    }
  }
}

const POINTER = /^\/(?:submissions|submission_ids)\/(\d+)(?:\/(\w+))?$/;

/** Returns an error that names the lines of refused submissions, or the error itself. */
function located(error: unknown, batch: readonly GivenSubmission[]): unknown {
  if (!(error instanceof ApiError)) return error;
  const problems = error.errors.flatMap(({ pointer, detail }) => {
    const [, index, option] = POINTER.exec(pointer) ?? [];
    const entry = index === undefined ? undefined : batch[Number(index)];
    return entry
      ? [`${entry.from}: ${option === undefined ? '' : `${option}: `}${escapeText(detail)}`]
      : [];
  });
  return problems.length === 0 ? error : new CommandError(problems.join('\n'), ExitCode.usage);
}

type Options = ConnectOptions & {
  file?: string;
  upstream?: string;
  deadline?: number;
  metadata?: Record<string, unknown>;
  dataHash?: string;
  retrack?: boolean;
  wait?: boolean;
  timeout?: number;
  json?: boolean;
};

export function addTrack(program: Command): void {
  withServer(program.command('track'))
    .description('Track submissions until they are final.')
    .argument('[ids...]', 'submission ids; without ids, submissions are read from --file or stdin')
    .option('--file <file>', 'read submissions from a file: ids or NDJSON; - reads stdin')
    .option('--upstream <name>', 'name of a configured upstream')
    .option(
      '--deadline <duration>',
      'time limit for finality: 90s, 10m, 24h, 7d (default: what the server is set to)',
      parseDuration,
    )
    .option('--metadata <json>', 'JSON object stored with the submission', parseObject)
    .option('--data-hash <hash>', 'BLAKE2b-256 hash of the submitted data: 0x and 64 digits')
    .option(
      '--retrack',
      'track ids again that ended as failed, unknown, rejected, expired or cancelled',
    )
    .option('--wait', 'wait until all submissions are final')
    .option(
      '--timeout <duration>',
      'with --wait: maximum time to wait: 90s, 10m (default: no limit)',
      parseDuration,
    )
    .option('--json', 'print JSON: one object, or with --wait one line per ended submission')
    .addHelpText(
      'after',
      `
A file has one submission per line: its id, or a JSON object with submission_id and options (upstream, deadline, unknown_grace_s,
stuck_after_s, metadata, callback_url, data_hash, tracked_at).
Blank lines and lines that begin with # are ignored. The options of the command apply to lines that do not set them. The output
of \`dawatch list --json\` is accepted: its open submissions are tracked, the final ones are skipped.

Ids that are already tracked are unchanged. Without --wait, the exit code is 3 if any id had already ended and is not
tracked again. With --wait, it depends on the final statuses of all ids.

Examples:
  dawatch track 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11
  dawatch track --file ids.txt --wait --timeout 10m
  dawatch track --retrack 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11 --deadline 48h
  dawatch track --file submissions.ndjson --metadata '{"batch": 7}'
  dawatch list --limit all --json | dawatch track --server https://new.example --file -
  submit-everything | dawatch track --wait --json > final.ndjson`,
    )
    .action(async (args: string[], options: Options) => {
      if (options.timeout !== undefined && !options.wait)
        throw new CommandError('--timeout requires --wait', ExitCode.usage);
      const { submissions, skipped } = await readSubmissions(args, options, Date.now());
      const client = connect(options);
      const total = await trackInBatches(client, submissions, toTrackOptions(options));
      if (options.json && !options.wait)
        process.stdout.write(`${toJson({ ...total, skipped_final: skipped })}\n`);
      else process.stderr.write(describe(total, skipped));
      if (!options.wait) {
        if (total.already_final > 0) process.exitCode = ExitCode.notFinalized;
        return;
      }
      const ids = submissions.map(({ item }) => item.submission_id);
      process.exitCode = await awaitFinal(client, ids, {
        timeoutMs: options.timeout,
        json: options.json ?? false,
      });
    });
}

function describe(total: Total, skipped: CountByStatus): string {
  const { accepted, already_tracked, retracked, kept_options: kept } = total;
  const byStatus = (what: string, counts: CountByStatus) =>
    Object.entries(counts).map(([status, number]) => `${what} ${number} ${status}`);
  const counts = [
    `accepted ${accepted}`,
    `already tracked ${already_tracked}`,
    ...byStatus('already', total.final_statuses),
    ...(retracked > 0 ? [`retracked ${retracked}`] : []),
    ...byStatus('skipped', skipped),
  ];
  const keeping = kept.length === 0 ? '' : `; kept the earlier ${kept.join(', ')}`;
  return `${counts.join(', ')}${keeping}\n`;
}

function toTrackOptions(options: Options): TrackOptions {
  const { upstream, deadline, metadata, dataHash, retrack } = options;
  return {
    ...(upstream !== undefined && { upstream }),
    ...(deadline !== undefined && { deadline: new Date(Date.now() + deadline).toISOString() }),
    ...(metadata !== undefined && { metadata }),
    ...(dataHash !== undefined && { data_hash: dataHash }),
    ...(retrack !== undefined && { retrack }),
  };
}

export function addCancel(program: Command): void {
  withServer(program.command('cancel'))
    .description('Stop tracking submissions. Final submissions are not changed.')
    .argument('<ids...>', 'submission ids')
    .option('--json', 'print one JSON line per submission')
    .addHelpText('after', '\nExample:\n  dawatch cancel 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11')
    .action(async (args: string[], options: ConnectOptions & { json?: boolean }) => {
      const ids = await readIds(args);
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
