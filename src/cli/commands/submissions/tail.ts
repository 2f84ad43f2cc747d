import type { Command } from 'commander';
import type { DawatchEvent, EventOptions, FeedEvent, MetadataFilter } from '../../../client/index.ts';
import { escapeText } from '../../../domain/text.ts';
import { type ConnectOptions, connect, withServer } from '../../connect.ts';
import { collectMetadata, collectTypes } from '../../input/event-filter.ts';
import { untilStopped } from '../../input/signals.ts';
import { parseCount } from '../../output/count.ts';
import { toJson } from '../../output/json.ts';

type Options = ConnectOptions & {
  type?: string[];
  id?: string;
  metadata?: MetadataFilter;
  after?: number;
  json?: boolean;
};

export function addTail(program: Command): void {
  withServer(program.command('tail'))
    .description(
      'Show events as they happen, until Ctrl-C. Goes on over restarts of the server, without gap or repeat.',
    )
    .option('--type <types>', 'only those: submission.failed, submission.*; with commas, or repeated', collectTypes)
    .option('--id <id>', 'only about this submission')
    .option('--metadata <name=value>', 'only about submissions with this metadata; repeated: with all', collectMetadata)
    .option('--after <seq>', 'begin behind the event with this number; 0: with the first', parseCount)
    .option('--json', 'print one event per line, as webhooks get it')
    .addHelpText('after', "\nExample:\n  dawatch tail --json --type submission.finalized | jq '.data.submission'")
    .action(async (options: Options) => {
      const client = connect(options);
      const stopped = new AbortController();
      void untilStopped().then(() => stopped.abort());
      // Whether the server is there at all, and takes the key, should be told at once.
      await client.list({ limit: 1 });
      for await (const event of client.events({ ...toEventOptions(options), signal: stopped.signal, onRetry, onGap }))
        process.stdout.write(`${options.json ? toJson(withoutSeq(event)) : toLine(event)}\n`);
    });
}

function toEventOptions({ type, id, metadata, after }: Options): EventOptions {
  return {
    ...(type !== undefined && { types: type }),
    ...(id !== undefined && { submissionId: id }),
    ...(metadata !== undefined && { metadata }),
    ...(after !== undefined && { after }),
  };
}

const onRetry: NonNullable<EventOptions['onRetry']> = ({ error, delayMs }) => {
  process.stderr.write(`dawatch: ${escapeText(error.message)}; again in ${(delayMs / 1_000).toFixed(1)} s\n`);
};

const onGap: NonNullable<EventOptions['onGap']> = ({ after, through }) => {
  process.stderr.write(`dawatch: events between ${after + 1} and ${through} may be missing: they are kept no longer\n`);
};

function withoutSeq({ seq: _, ...event }: FeedEvent): DawatchEvent {
  return event;
}

function toLine(event: FeedEvent): string {
  const parts = [String(event.seq), event.timestamp, event.type, ...about(event)];
  return parts.map((part) => escapeText(part)).join('  ');
}

/** A newer server may tell of what isn't known here: then it is named, and nothing else. */
function about({ data }: DawatchEvent): string[] {
  if ('submission' in data) {
    const { submission_id, data: answered, error } = data.submission;
    const block = answered?.block_number;
    return [
      submission_id,
      ...(typeof block === 'number' ? [`block ${block}`] : []),
      ...(error === null ? [] : [error]),
    ];
  }
  if ('alert' in data) return [data.alert.summary];
  if ('upstream' in data) return [data.upstream];
  return 'webhook_id' in data ? [data.webhook_id] : [];
}
