import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchServer } from '../processes.ts';

const EVERY_MS = 5;

/**
 * How long the event loop of a server was blocked at most during `work`: by responses of /livez, and by its own timer. `stolenMs`: core time that other
 * virtual machines took from this one during the longest response, in steps of 10 ms.
 */
export type Blocks = { livezMs: number; loopMs: number; stolenMs: number; tookS: number };

/** Requests /livez every few milliseconds while `work` runs. Returns the longest times, and what `work` returned. */
export async function longestBlock<T>(server: BenchServer, work: () => Promise<T>): Promise<Blocks & { result: T }> {
  const agent = new Agent({ keepAlive: true });
  const ended = new AbortController();
  let longest = { livezMs: 0, stolenMs: 0 };
  await loopDelayMs(server);
  const probing = (async () => {
    while (!ended.signal.aborted) {
      const [from, stolen] = [performance.now(), stolenSoFarMs()];
      await livez(server.url, agent);
      const livezMs = performance.now() - from;
      if (livezMs > longest.livezMs) longest = { livezMs, stolenMs: stolenSoFarMs() - stolen };
      await sleep(EVERY_MS);
    }
  })();
  const from = performance.now();
  try {
    const result = await work();
    const tookS = (performance.now() - from) / 1_000;
    return { result, ...longest, tookS, loopMs: await loopDelayMs(server) };
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
