import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { untilStopped } from '../cli/exit.ts';
import { collectMetadata, collectTypes, parseCount } from '../cli/input.ts';
import { toJson } from '../cli/output.ts';
import type { DawatchEvent, EventOptions, FeedEvent, MetadataFilter } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';

type Options = ConnectOptions & {
  type?: string[];
  id?: string;
  metadata?: MetadataFilter;
  after?: number;
  json?: boolean;
};

export function addTail(program: Command): void {
  withServer(program.command('tail'))
    .description('Show events as they happen, until Ctrl-C.')
    .option(
      '--type <types>',
      'only these event types: submission.failed, submission.*; separated by commas, or repeated',
      collectTypes,
    )
    .option('--id <id>', 'only events about this submission')
    .option(
      '--metadata <name=value>',
      'only events about submissions with this metadata; repeated: with all of them',
      collectMetadata,
    )
    .option(
      '--after <seq>',
      'start after the event with this sequence number; 0: with the first event',
      parseCount,
    )
    .option('--json', 'print one event per line, as sent to webhooks')
    .addHelpText(
      'after',
      "\nExample:\n  dawatch tail --json --type submission.finalized | jq '.data.submission'",
    )
    .action(async (options: Options) => {
      const client = connect(options);
      const stopped = new AbortController();
      void untilStopped().then(() => stopped.abort());
      // Reports an unreachable server or a refused key at once; the feed would retry.
      await client.list({ limit: 1 });
      const { onRetry, onEvent } = reportRetries();
      for await (const event of client.events({
        ...toEventOptions(options),
        signal: stopped.signal,
        onRetry,
        onGap,
      })) {
        onEvent();
        const { seq: _, ...sent } = event;
        process.stdout.write(`${options.json ? toJson(sent) : toLine(event)}\n`);
      }
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

/** Reports a lost connection once until an event arrives or the reason changes. */
function reportRetries() {
  let reported: string | undefined;
  return {
    onRetry({ error }: { error: Error }) {
      if (error.message === reported) return;
      reported = error.message;
      process.stderr.write(`dawatch: ${escapeText(reported)}; trying again until it works\n`);
    },
    onEvent() {
      reported = undefined;
    },
  };
}

const onGap: NonNullable<EventOptions['onGap']> = ({ after, through }) => {
  process.stderr.write(
    `dawatch: events between ${after + 1} and ${through} may be missing, because they have been deleted\n`,
  );
};

function toLine(event: FeedEvent): string {
  const parts = [String(event.seq), event.timestamp, event.type, ...about(event)];
  return parts.map((part) => escapeText(part)).join('  ');
}

/** Returns the details of an event. An unknown type of a newer server has none. */
function about({ data }: DawatchEvent): string[] {
  if ('submission' in data) {
    const { submission_id, data: upstreamData, error } = data.submission;
    const block = upstreamData?.block_number;
    return [
      submission_id,
      ...(block ? [`block ${block}`] : []),
      ...(error === null ? [] : [error]),
    ];
  }
  if ('alert' in data) return [data.alert.summary, ...(data.alert.muted ? ['(muted)'] : [])];
  if ('channel' in data) return [data.channel];
  if ('upstream' in data) return [data.upstream];
  return 'webhook_id' in data ? [data.webhook_id] : [];
}
