import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchServer } from '../processes.ts';

const EVERY_MS = 5;

/**
 * How long a server did not respond during `work`. `lateMs`: the longest time for which a response of /livez was missing after a bare server had
 * responded to a request of the same moment. `livezMs`: the longest response of /livez, and `bareMs`: that of the bare server, perhaps at another moment.
 * `loopMs`: the longest delay of a timer of the server.
 */
export type Delays = {
  lateMs: number;
  livezMs: number;
  bareMs: number;
  loopMs: number;
  tookS: number;
};

/** Requests /livez every few milliseconds while `work` runs, and the bare server at the same moments, unless it still responds to the request before. */
export async function longestDelays(server: BenchServer, bareUrl: string, work: () => Promise<void>): Promise<Delays> {
  const agent = new Agent({ keepAlive: true });
  const ended = new AbortController();
  const longest = { lateMs: 0, livezMs: 0, bareMs: 0 };
  let compared = Promise.resolve();
  let bare: Promise<number> | undefined;
  const requestBare = async (from: number) => {
    await respond(bareUrl, agent);
    bare = undefined;
    const at = performance.now();
    longest.bareMs = Math.max(longest.bareMs, at - from);
    return at;
  };
  const probe = async () => {
    const from = performance.now();
    const livez = respond(`${server.url}/livez`, agent);
    bare ??= requestBare(from);
    const bareAt = bare;
    await livez;
    const at = performance.now();
    longest.livezMs = Math.max(longest.livezMs, at - from);
    compared = bareAt.then((respondedAt) => {
      longest.lateMs = Math.max(longest.lateMs, at - Math.max(from, respondedAt));
    });
  };
  await loopDelayMs(server);
  const probing = (async () => {
    for (; !ended.signal.aborted; await sleep(EVERY_MS)) await probe();
    await compared;
  })();
  const from = performance.now();
  try {
    await work();
    const tookS = (performance.now() - from) / 1_000;
    return { ...longest, tookS, loopMs: await loopDelayMs(server) };
  } finally {
    ended.abort();
    await probing;
    agent.destroy();
  }
}

function respond(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => response.resume().on('end', resolve)).on('error', reject);
  });
}

/** Returns the longest delay of a timer of the server since the previous call, in milliseconds; each reading resets it. */
async function loopDelayMs({ url }: BenchServer): Promise<number> {
  // A text is served again for a second, without being reset.
  await sleep(1_100);
  const text = await (await fetch(`${url}/metrics`)).text();
  return 1_000 * Number(/^nodejs_eventloop_lag_max_seconds (.*)$/m.exec(text)?.[1]);
}
