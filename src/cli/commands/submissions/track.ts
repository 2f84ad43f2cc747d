import { type Command, InvalidArgumentError } from 'commander';
import { pause } from '../../../client/backoff.ts';
import { ApiError } from '../../../client/errors.ts';
import type { DawatchClient, TrackOptions } from '../../../client/index.ts';
import type { Tracked, TrackOptionName } from '../../../client/shapes.ts';
import { DEEP_METADATA_REASON, isTooDeep } from '../../../domain/json.ts';
import { escapeText } from '../../../domain/text.ts';
import { MAX_IDS_PER_REQUEST } from '../../../domain/track-request.ts';
import { awaitFinal } from '../../await-final.ts';
import { type ConnectOptions, connect, withServer } from '../../connect.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { parseDuration } from '../../input/duration.ts';
import { readIds } from '../../input/ids.ts';
import { toJson } from '../../output/json.ts';
import { plural } from '../../output/table.ts';
import { withWaitIndicator } from '../../output/wait-indicator.ts';

/** Rate limited or overloaded. */
const BUSY: readonly number[] = [429, 503];
const MAX_BUSY_MS = 120_000;

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
    .argument('[ids...]', 'submission ids; without ids, they are read from --file or stdin, one per line')
    .option('--file <file>', 'read ids from a file, one per line; - reads stdin')
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
Ids that are tracked already are unchanged. Without --wait, the exit code is 3 if any id had ended already and is not
tracked again; with --wait, it says how all of them ended.

Examples:
  dawatch track 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11
  dawatch track --file ids.txt --wait --timeout 10m
  dawatch track --retrack 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11 --deadline 48h
  submit-everything | dawatch track --wait --json > final.ndjson`,
    )
    .action(async (args: string[], options: Options) => {
      if (options.timeout !== undefined && !options.wait)
        throw new CommandError('--timeout requires --wait', ExitCode.usage);
      const ids = await readIds(args, options.file);
      const client = connect(options);
      const total: Total = { accepted: 0, already_tracked: 0, already_final: 0, retracked: 0, not_applied: [] };
      for (let start = 0; start < ids.length; start += MAX_IDS_PER_REQUEST) {
        const batch = ids.slice(start, start + MAX_IDS_PER_REQUEST);
        const name = `ids ${start + 1} to ${start + batch.length} of ${ids.length}`;
        const tracked = await withWaitIndicator(name, track(client, batch, toTrackOptions(options)));
        add(tracked, total);
      }
      if (options.json && !options.wait) process.stdout.write(`${toJson(total)}\n`);
      else process.stderr.write(describe(total));
      if (!options.wait) {
        if (total.already_final > 0) process.exitCode = ExitCode.notFinalized;
        return;
      }
      process.exitCode = await awaitFinal(client, ids, { timeoutMs: options.timeout, json: options.json ?? false });
    });
}

type Count = 'accepted' | 'already_tracked' | 'already_final' | 'retracked';
type Total = Record<Count, number> & { not_applied: { submission_id: string; options: TrackOptionName[] }[] };

/** Adds the counts of one response, in which counts may be missing if the server is older. */
function add(tracked: Tracked, total: Total): void {
  for (const name of ['accepted', 'already_tracked', 'already_final', 'retracked'] as const)
    total[name] += Number(tracked[name] ?? 0);
  for (const { submission_id, not_applied } of tracked.submissions)
    if (not_applied) total.not_applied.push({ submission_id, options: not_applied });
}

function describe(total: Total): string {
  const { accepted, already_tracked, already_final, retracked, not_applied } = total;
  const counts = [`accepted ${accepted}`, `already tracked ${already_tracked}`];
  if (already_final > 0) counts.push(`already final ${already_final}`);
  if (retracked > 0) counts.push(`retracked ${retracked}`);
  const names = [...new Set(not_applied.flatMap(({ options }) => options))].join(', ');
  const unchanged = `other options are unchanged for ${plural(not_applied.length, 'submission')}: ${escapeText(names)}\n`;
  return `${counts.join(', ')}\n${not_applied.length > 0 ? unchanged : ''}`;
}

/** Tracks a batch. Retries while the server is busy: it then accepts nothing of the batch and sends Retry-After. */
async function track(client: DawatchClient, batch: readonly string[], options: TrackOptions): Promise<Tracked> {
  for (const startedAt = performance.now(); ; ) {
    try {
      return await client.track(batch, options);
    } catch (error) {
      const waitMs = error instanceof ApiError && BUSY.includes(error.status) ? 1_000 * (error.retryAfterS ?? 0) : 0;
      if (waitMs === 0 || performance.now() + waitMs - startedAt > MAX_BUSY_MS) throw error;
      await pause(waitMs);
    }
  }
}

function toTrackOptions({ upstream, deadline, metadata, retrack }: Options): TrackOptions {
  return {
    ...(upstream !== undefined && { upstream }),
    ...(deadline !== undefined && { deadline: new Date(Date.now() + deadline).toISOString() }),
    ...(metadata !== undefined && { metadata }),
    ...(retrack && { retrack }),
  };
}

function parseObject(text: string): Record<string, unknown> {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InvalidArgumentError('Expected a JSON object.');
  if (isTooDeep(value)) throw new InvalidArgumentError(`${DEEP_METADATA_REASON}.`);
  return { ...value };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
