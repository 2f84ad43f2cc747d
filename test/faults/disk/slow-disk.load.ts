import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { reading, scrape } from '../../support/app/metrics.ts';
import { CRASH_API_KEY, prepareServer, sleep } from '../../support/processes/killable-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { quantile } from '../support/flood.ts';
import { openFaultyDisk } from './faulty-disk.ts';
import { isCompilerMissing } from './preload.ts';

const DELAYS_MS = [0, 20, 50] as const;
/** The delays take turns, so that other load on the machine concerns all of them. */
const ROUNDS = 3;
const ROUND_MS = 8_000;
const TRACKED = 8_000;
const POLLS_PER_S = 1_000;
const MAX_RATIO = 2;
const MIN_POLLS = 0.95;

type Samples = {
  livez: number[];
  status: number[];
  feed: number[];
  post: number[];
  polls: number[];
};

test.skipIf(isCompilerMissing())(
  'a disk whose syncs take 20 or 50 ms delays no poll, no status read and no event of an acknowledged change',
  async () => {
    const folder = tempFolder();
    const disk = openFaultyDisk(folder, folder);
    const upstream = await openPendingUpstream();
    const server = await prepareServer(folder, {
      upstreams: {
        default: {
          url: upstream,
          api_key: 'any',
          lag_price: 1_000,
          budget: { requests: POLLS_PER_S, per_s: 1, concurrency: 64 },
        },
      },
      log: { level: 'error' },
    });
    server.start({ env: disk.env });
    await server.listening();
    const { client } = server;
    const ids = Array.from({ length: TRACKED }, () => randomUUID());
    await client.track(ids);
    const events = readEvents(server.url);
    const measured = new Map(DELAYS_MS.map((delay): [number, Samples] => [delay, emptySamples()]));
    await sleep(2_000);
    for (let round = 0; round < ROUNDS; round++)
      for (const [syncDelayMs, samples] of measured) {
        disk.set({ syncDelayMs });
        await sleep(500);
        await measureRound(samples);
      }
    const result = [...measured].map(([delay, samples]) => ({ delay, ...summaryOf(samples) }));
    console.log(
      [
        'fsync ms · livez p50 p99 · status p50 p99 · event after acknowledgement p50 p99 · post p50 p99 · polls/s',
        ...result.map(lineOf),
      ].join('\n'),
    );
    const [fast, ...slow] = result;
    for (const { delay, livez, status, feed, polls } of slow) {
      const ratios = {
        livez: livez.p99 / (fast?.livez.p99 ?? 0),
        status: status.p99 / (fast?.status.p99 ?? 0),
        feed: feed.p99 / (fast?.feed.p99 ?? 0),
      };
      for (const [what, ratio] of Object.entries(ratios))
        expect(ratio, `${what} at ${delay} ms`).toBeLessThan(MAX_RATIO);
      expect(polls / (fast?.polls ?? 0), `polls at ${delay} ms`).toBeGreaterThan(MIN_POLLS);
    }
    expect(await server.stop()).toBe(0);

    async function measureRound(samples: Samples): Promise<void> {
      const until = performance.now() + ROUND_MS;
      const repeat = async (work: () => Promise<void>, pauseMs: number) => {
        while (performance.now() < until) {
          await work();
          await sleep(pauseMs);
        }
      };
      const pollsBefore = await pollsOf(server.url);
      const begun = performance.now();
      await Promise.all([
        repeat(() => timed(samples.livez, () => fetchOk(`${server.url}/livez`)), 10),
        repeat(
          () =>
            timed(samples.status, () => client.get(ids[Math.floor(Math.random() * TRACKED)] ?? '')),
          10,
        ),
        repeat(async () => {
          const id = randomUUID();
          await timed(samples.post, () => client.track([id]));
          await client.cancel(id);
          const acknowledged = performance.now();
          samples.feed.push(Math.max(0, (await events.arrival(id)) - acknowledged));
        }, 40),
      ]);
      samples.polls.push(
        ((await pollsOf(server.url)) - pollsBefore) / ((performance.now() - begun) / 1_000),
      );
    }
  },
);

async function timed(samples: number[], work: () => Promise<unknown>): Promise<void> {
  const from = performance.now();
  await work();
  samples.push(performance.now() - from);
}

async function fetchOk(url: string): Promise<void> {
  const response = await fetch(url);
  await response.arrayBuffer();
  expect(response.status).toBe(200);
}

async function pollsOf(url: string): Promise<number> {
  return (
    reading((await scrape(url)).text, 'dawatch_polls_total', {
      upstream: 'default',
      result: 'pending',
    }) ?? 0
  );
}

/** Reads the live feed until the test ends. */
function readEvents(url: string) {
  const arrived = new Map<string, number>();
  const waiting = new Map<string, (at: number) => void>();
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const reading = async () => {
    const query = 'type=submission.cancelled';
    const response = await fetch(`${url}/v1/events?${query}`, {
      headers: { 'x-api-key': CRASH_API_KEY },
      signal: ending.signal,
    });
    let rest = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const at = performance.now();
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const [, id = ''] of blocks.map(
        (block) => /"submission_id":"([^"]+)"/.exec(block) ?? [],
      )) {
        arrived.set(id, at);
        waiting.get(id)?.(at);
      }
    }
  };
  reading().catch(() => undefined);
  return {
    arrival: (id: string) =>
      new Promise<number>((resolve) => {
        const at = arrived.get(id);
        if (at === undefined) waiting.set(id, resolve);
        else resolve(at);
      }),
  };
}

/** Every submission is pending. In its own process. */
async function openPendingUpstream(): Promise<string> {
  const child = fork(join(import.meta.dirname, 'pending-upstream.ts'));
  onTestFinished(() => void child.kill());
  return new Promise((resolve) => child.once('message', (url) => resolve(String(url))));
}

function emptySamples(): Samples {
  return { livez: [], status: [], feed: [], post: [], polls: [] };
}

function summaryOf({ polls, ...times }: Samples) {
  const of = (values: readonly number[]) => ({
    p50: quantile(values, 0.5),
    p99: quantile(values, 0.99),
  });
  const { livez, status, feed, post } = times;
  return {
    livez: of(livez),
    status: of(status),
    feed: of(feed),
    post: of(post),
    polls: quantile(polls, 0.5),
  };
}

function lineOf({
  delay,
  livez,
  status,
  feed,
  post,
  polls,
}: { delay: number } & ReturnType<typeof summaryOf>): string {
  const times = [livez, status, feed, post].map(
    ({ p50, p99 }) => `${p50.toFixed(1)} ${p99.toFixed(1)}`,
  );
  return [delay, ...times, polls.toFixed(0)].join(' · ');
}
