import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { reading, scrape } from '../support/app/metrics.ts';
import { CRASH_API_KEY, type KillableServer, sleep } from '../support/processes/killable-server.ts';
import { createWebhook } from '../support/servers/deliveries.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { prepareWorld } from './support/world.ts';

/** In CI the test only runs all of the load; V8 may not collect garbage in so short a time. */
const MINUTES = Number(process.env.SOAK_MINUTES ?? 0.1);
const EVERY_MS = 250;
const PER_ROUND = 5;
const READERS = 10;
/**
 * The permitted growth from the second fifth of the time to the last; the memory of a process grows
 * in steps.
 */
const MAX_RISE = { heapMib: 16, mib: 96, handles: 20 };

type Sample = Record<keyof typeof MAX_RISE, number>;

test(`${MINUTES} minutes of combined load: memory and handles stay flat, and nothing is lost`, {
  timeout: (MINUTES + 5) * 60_000,
}, async () => {
  const world = await prepareWorld('soak', {
    sandbox: { timeoutRate: 0.05, regressRate: 0.05 },
    // One connection each, opened when polls coincide: so few are all open after the warm-up, so
    // that none of them seems to leak.
    upstream: { budget: { requests: 400, per_s: 1, concurrency: 8 } },
    settings: { log: { level: 'warn' } },
  });
  await world.start();
  const { client, url } = world.server;
  const headers = { 'x-api-key': CRASH_API_KEY };
  const slow = await openReceiver(({ response }) => {
    setTimeout(() => response.writeHead(204).end(), 1_000);
  });
  await createWebhook(url, slow.url);
  const until = performance.now() + MINUTES * 60_000;
  const repeat = async (work: () => Promise<unknown>, everyMs = EVERY_MS) => {
    for (; performance.now() < until; await sleep(everyMs)) await work();
  };

  const request = async () => {
    const { submissions } = await client.list({ limit: 50 });
    const id = submissions[0]?.submission_id;
    await Promise.all(
      [
        ...(id ? [`submissions/${id}`, `submissions/${id}/wait?timeout_s=1`] : []),
        ...['overview', 'pacing'],
      ].map(async (path) => {
        const response = await fetch(`${url}/v1/${path}`, { headers });
        expect([path, response.status]).toEqual([path, 200]);
        await response.text();
      }),
    );
    const invalid = await fetch(`${url}/v1/submissions`, { method: 'POST', body: '{' });
    await invalid.text();
  };
  const read = async () => {
    const leave = new AbortController();
    setTimeout(() => leave.abort(), world.between(100, 5_000));
    for await (const _ of client.events({ signal: leave.signal }));
  };
  const samples: Sample[] = [];
  await Promise.all([
    repeat(() => world.track(PER_ROUND)),
    repeat(request),
    ...Array.from({ length: READERS }, () => repeat(read)),
    repeat(async () => samples.push(await sampleOf(world.server)), 1_000),
  ]);
  const fifths = windowsOf(samples, 5);
  console.log(`${world.expected.size} submissions; in each fifth of the time:`);
  console.table(fifths);
  const [second, last] = [fifths[1], fifths.at(-1)];
  if (process.env.SOAK_MINUTES && second && last)
    for (const [what, rise] of Object.entries(MAX_RISE) as [keyof Sample, number][])
      expect(last[what] - second[what], what).toBeLessThan(rise);
  // V8 returns the memory of collected garbage late.
  await world.expectSurvived({ memoryMiB: 400 });
});

async function sampleOf(server: KillableServer): Promise<Sample> {
  const { text } = await scrape(server.url);
  return {
    heapMib: (reading(text, 'nodejs_heap_size_used_bytes') ?? 0) / 1_048_576,
    mib: server.residentMiB() ?? 0,
    handles: readdirSync(`/proc/${server.pid()}/fd`).length,
  };
}

/** Returns the least values of windows of equal length: those after a garbage collection. */
function windowsOf(samples: readonly Sample[], count: number): Sample[] {
  const size = Math.max(1, Math.floor(samples.length / count));
  return Array.from({ length: count }, (_, index) => {
    const window = samples.slice(index * size, (index + 1) * size);
    const least = (what: keyof Sample) => Math.round(Math.min(...window.map((one) => one[what])));
    return { heapMib: least('heapMib'), mib: least('mib'), handles: least('handles') };
  });
}
