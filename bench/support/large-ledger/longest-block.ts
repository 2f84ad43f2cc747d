import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchServer } from '../processes.ts';

const EVERY_MS = 5;

/**
 * How long the event loop of a server was blocked at most during `work`. `blockedMs`: the longest response of /livez, without the time in which the
 * thread of the server was ready and had no core. `livezMs`: the longest response, and of it `waitedMs` without a core; `stolenMs`: the core time
 * that other virtual machines took during it, in steps of 10 ms. `loopMs`: the longest delay of a timer of the server.
 */
export type Blocks = {
  blockedMs: number;
  livezMs: number;
  waitedMs: number;
  stolenMs: number;
  loopMs: number;
  tookS: number;
};

/** Requests /livez every few milliseconds while `work` runs. Returns the longest times, and what `work` returned. */
export async function longestBlock<T>(server: BenchServer, work: () => Promise<T>): Promise<Blocks & { result: T }> {
  const agent = new Agent({ keepAlive: true });
  const ended = new AbortController();
  let longest = { livezMs: 0, waitedMs: 0, stolenMs: 0 };
  let blockedMs = 0;
  await loopDelayMs(server);
  const probing = (async () => {
    while (!ended.signal.aborted) {
      const [from, waited, stolen] = [performance.now(), waitedSoFarMs(server.pid), stolenSoFarMs()];
      await livez(server.url, agent);
      const livezMs = performance.now() - from;
      const waitedMs = waitedSoFarMs(server.pid) - waited;
      if (livezMs > longest.livezMs) longest = { livezMs, waitedMs, stolenMs: stolenSoFarMs() - stolen };
      blockedMs = Math.max(blockedMs, livezMs - waitedMs);
      await sleep(EVERY_MS);
    }
  })();
  const from = performance.now();
  try {
    const result = await work();
    const tookS = (performance.now() - from) / 1_000;
    return { result, blockedMs, ...longest, tookS, loopMs: await loopDelayMs(server) };
  } finally {
    ended.abort();
    await probing;
    agent.destroy();
  }
}

function livez(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(`${url}/livez`, { agent }, (response) => response.resume().on('end', resolve)).on('error', reject);
  });
}

/** The time in which the first thread of a process was ready to run and other threads had the cores. */
function waitedSoFarMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6;
}

/** Of all cores, since the start of the machine. */
function stolenSoFarMs(): number {
  return 10 * Number(readFileSync('/proc/stat', 'latin1').split(/\s+/, 9)[8]);
}

/** Returns the longest delay of a timer of the server since the previous call, in milliseconds; each reading resets it. */
async function loopDelayMs({ url }: BenchServer): Promise<number> {
  // A text is served again for a second, without being reset.
  await sleep(1_100);
  const text = await (await fetch(`${url}/metrics`)).text();
  return 1_000 * Number(/^nodejs_eventloop_lag_max_seconds (.*)$/m.exec(text)?.[1]);
}
