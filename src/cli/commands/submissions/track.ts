import { type Command, InvalidArgumentError } from 'commander';
import { pause } from '../../../client/backoff.ts';
import { ApiError } from '../../../client/errors.ts';
import type { DawatchClient, TrackOptions } from '../../../client/index.ts';
import type { Tracked } from '../../../client/shapes.ts';
import { DEEP_METADATA_REASON, isTooDeep } from '../../../domain/json.ts';
import { MAX_IDS_PER_REQUEST } from '../../../domain/track-request.ts';
import { awaitFinal } from '../../await-final.ts';
import { type ConnectOptions, connect, withServer } from '../../connect.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { parseDuration } from '../../input/duration.ts';
import { readIds } from '../../input/ids.ts';
import { toJson } from '../../output/json.ts';
import { withWaitIndicator } from '../../output/wait-indicator.ts';

/** Rate limited or overloaded. */
const BUSY: readonly number[] = [429, 503];
const MAX_BUSY_MS = 120_000;

type Options = ConnectOptions & {
  file?: string;
  upstream?: string;
  deadline?: number;
  metadata?: Record<string, unknown>;
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
    .option('--wait', 'wait until all submissions are final')
    .option('--timeout <duration>', 'with --wait: maximum time to wait: 90s, 10m (default: no limit)', parseDuration)
    .option('--json', 'print JSON: one object, or with --wait one line per ended submission')
    .addHelpText(
      'after',
      `
Examples:
  dawatch track 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11
  dawatch track --file ids.txt --wait --timeout 10m
  submit-everything | dawatch track --wait --json > final.ndjson`,
    )
    .action(async (args: string[], options: Options) => {
      if (options.timeout !== undefined && !options.wait)
        throw new CommandError('--timeout requires --wait', ExitCode.usage);
      const ids = await readIds(args, options.file);
      const client = connect(options);
      const total = { accepted: 0, already_tracked: 0 };
      for (let start = 0; start < ids.length; start += MAX_IDS_PER_REQUEST) {
        const batch = ids.slice(start, start + MAX_IDS_PER_REQUEST);
        const name = `ids ${start + 1} to ${start + batch.length} of ${ids.length}`;
        const tracked = await withWaitIndicator(name, track(client, batch, toTrackOptions(options)));
        total.accepted += tracked.accepted;
        total.already_tracked += tracked.already_tracked;
      }
      if (options.json && !options.wait) process.stdout.write(`${toJson(total)}\n`);
      else
        process.stderr.write(`accepted ${Number(total.accepted)}, already tracked ${Number(total.already_tracked)}\n`);
      if (!options.wait) return;
      process.exitCode = await awaitFinal(client, ids, { timeoutMs: options.timeout, json: options.json ?? false });
    });
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

function toTrackOptions({ upstream, deadline, metadata }: Options): TrackOptions {
  return {
    ...(upstream !== undefined && { upstream }),
    ...(deadline !== undefined && { deadline: new Date(Date.now() + deadline).toISOString() }),
    ...(metadata !== undefined && { metadata }),
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
