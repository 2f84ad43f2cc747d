import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { inTurns, type Row } from '../row.ts';
import { startPolling } from '../support/polling.ts';
import { costsOf, runProgram } from '../support/processes.ts';
import { pollsOf } from '../support/scrape.ts';

/**
 * Enough that the delay of 5 s has passed for the first before the peer has polled the last, so the
 * peer never waits.
 */
const SUBMISSIONS = 15_000;
/** The number of responses per submission, of which the last is Finalized. */
const RESPONSES = 3;
const PEER =
  'the usual BullMQ poller: a job per submission, moveToDelayed 5 s, an insert per change';

export const row: Row = {
  rounds: 3,
  metrics: [
    {
      what: `polls per second through BullMQ until all submissions are Finalized, each after ${RESPONSES} polls`,
      beside: PEER,
      target: { min: 2 },
      unit: '',
      value: ({ dawatch = 0, usual = 0 }) => dawatch / usual,
      context: ({ dawatch = 0, usual = 0, dawatchFinal = 0 }) =>
        `${Math.round(dawatch)} and ${Math.round(usual)} polls/s; ${Math.round(dawatchFinal)} submissions/s`,
    },
    {
      what: 'Redis commands per submission until it is Finalized',
      beside: 'the same poller',
      target: { max: 0.2 },
      unit: '',
      value: ({ dawatchCommands = 0, usualCommands = 0 }) => dawatchCommands / usualCommands,
      context: ({ dawatchCommands = 0, usualCommands = 0 }) =>
        `${dawatchCommands.toFixed(1)} and ${usualCommands.toFixed(1)} commands`,
    },
  ],
  async open() {
    const { folder, url, redisUrl, server, close } = await startPolling({
      upstream: ['Finalized', RESPONSES - 1],
      concurrency: 768,
      throughRedis: true,
      settings: { submissions: { recheck_after_s: 0 } },
    });
    const commands = new Redis(redisUrl);
    const finalized = async () => (await server.client.overview()).submissions.finalized;

    /** Returns the Redis commands of `work` per submission. */
    async function commandsOf(work: () => Promise<void>): Promise<number> {
      const before = await processed(commands);
      await work();
      return ((await processed(commands)) - before) / SUBMISSIONS;
    }

    return {
      async round(index) {
        let [dawatch, dawatchFinal, usual, dawatchCommands, usualCommands] = [0, 0, 0, 0, 0];
        await inTurns(index, [
          async () => {
            const ids = Array.from({ length: SUBMISSIONS }, () => randomUUID());
            dawatchCommands = await commandsOf(async () => {
              const [before, pollsBefore, from] = [
                await finalized(),
                await pollsOf(server),
                performance.now(),
              ];
              for (let at = 0; at < SUBMISSIONS; at += 1_000)
                await server.client.track(ids.slice(at, at + 1_000));
              // Polled rarely, because this request costs the server CPU, whereas the peer counts
              // internally.
              while ((await finalized()) < before + SUBMISSIONS) await sleep(100);
              const seconds = (performance.now() - from) / 1_000;
              dawatch = ((await pollsOf(server)) - pollsBefore) / seconds;
              dawatchFinal = SUBMISSIONS / seconds;
            });
          },
          async () => {
            usualCommands = await commandsOf(async () => {
              const args = [url, redisUrl, folder, SUBMISSIONS];
              const { polls, seconds } = await runProgram<{ polls: number; seconds: number }>(
                'peers/bullmq-poller.ts',
                args,
              );
              usual = polls / seconds;
            });
          },
        ]);
        return { dawatch, dawatchFinal, usual, dawatchCommands, usualCommands };
      },
      memoryMib: () => costsOf(server.pid).mib,
      async close() {
        commands.disconnect();
        await close();
      },
    };
  },
};

/** Returns the number of commands that this Redis has processed, including those in scripts. */
async function processed(redis: Redis): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1]);
}
