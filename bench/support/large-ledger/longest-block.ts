import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchServer } from '../processes.ts';

const EVERY_MS = 5;

/** How long the event loop of a server was blocked at most during `work`: by responses of /livez, and by its own timer. */
export type Blocks = { livezMs: number; loopMs: number; tookS: number };

/** Requests /livez every few milliseconds while `work` runs. Returns the longest times, and what `work` returned. */
export async function longestBlock<T>(server: BenchServer, work: () => Promise<T>): Promise<Blocks & { result: T }> {
  const agent = new Agent({ keepAlive: true });
  const ended = new AbortController();
  let livezMs = 0;
  await loopDelayMs(server);
  const probing = (async () => {
    while (!ended.signal.aborted) {
      const from = performance.now();
      await livez(server.url, agent);
      livezMs = Math.max(livezMs, performance.now() - from);
      await sleep(EVERY_MS);
    }
  })();
  const from = performance.now();
  try {
    const result = await work();
    return { result, livezMs, tookS: (performance.now() - from) / 1_000, loopMs: await loopDelayMs(server) };
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

/** Returns the longest delay of a timer of the server since the previous call, in milliseconds; each reading resets it. */
async function loopDelayMs({ url }: BenchServer): Promise<number> {
  // A text is served again for a second, without being reset.
  await sleep(1_100);
  const text = await (await fetch(`${url}/metrics`)).text();
  return 1_000 * Number(/^nodejs_eventloop_lag_max_seconds (.*)$/m.exec(text)?.[1]);
}
