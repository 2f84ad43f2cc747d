import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { UNAVAILABLE_REASONS } from '../submissions/classify.ts';

/** The queue between a server and its workers. */
export const POLLS_QUEUE = 'dawatch-polls';
export const MAX_IDS_PER_JOB = 50;

/** Contains no secrets: a worker has its own API key for the upstream. */
export type PollJob = {
  upstream: string;
  submission_ids: string[];
  /** When its share of the request budget is released, epoch ms by the clock of Redis. */
  expires_at: number;
  /** The process of Redis that the job was added to; see readServer. */
  run_id: string;
};

const text = z.string().max(1_000_000);
const common = { submissionId: text, durationMs: z.int().min(0) };

/** What the upstream answered about one submission. The server sets the time by its own clock. */
const observationSchema = z.discriminatedUnion('kind', [
  z.object({
    ...common,
    kind: z.enum(['pending', 'finalized']),
    state: text,
    error: text.nullable(),
    envelope: text,
    blockNumber: z.number().nullable(),
  }),
  z.object({ ...common, kind: z.literal('error'), state: text, error: text, envelope: text }),
  z.object({ ...common, kind: z.literal('not_found'), error: text, ambiguous: z.boolean() }),
  z.object({ ...common, kind: z.literal('rejected'), error: text }),
  z.object({ ...common, kind: z.literal('unauthorized'), error: text }),
  z.object({
    ...common,
    kind: z.literal('throttled'),
    error: text,
    retryAfterMs: z.number().nullable(),
  }),
  z.object({
    ...common,
    kind: z.literal('unavailable'),
    reason: z.enum(UNAVAILABLE_REASONS),
    error: text,
    retryAfterMs: z.number().nullable(),
  }),
]);

/** The return value of a job. */
export const pollResultSchema = z.object({
  worker: z.string().max(300),
  observations: z.array(observationSchema).max(MAX_IDS_PER_JOB),
});
export type PollResult = z.input<typeof pollResultSchema>;

/** Maximum length of the event stream, which contains the results and is in the memory of Redis. */
const MAX_EVENTS = 2_000;

export function openPollsQueue(redis: Redis): Queue<PollJob, PollResult> {
  const queue = new Queue<PollJob, PollResult>(POLLS_QUEUE, {
    connection: redis,
    streams: { events: { maxLen: MAX_EVENTS } },
    // With the version check, a queue whose Redis disconnects during the check never works again.
    skipVersionCheck: true,
  });
  queue.on('error', () => undefined);
  return queue;
}

/**
 * Returns the names of the workers that are connected to the queue. Redis lists the clients of all
 * its databases.
 */
export async function listWorkers(
  queue: Queue<PollJob, PollResult>,
  { options: { db = 0 } }: Redis,
): Promise<string[]> {
  const clients = await queue.getWorkers();
  const names = clients
    .filter((client) => client.db === String(db))
    .map(({ rawname = '' }) => rawname.slice(rawname.lastIndexOf(':') + 1));
  return [...new Set(names)].sort();
}
