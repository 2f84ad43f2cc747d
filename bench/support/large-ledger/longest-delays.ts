import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchServer } from '../processes.ts';

const EVERY_MS = 5;

/**
 * `livezMs`: the longest response of /livez. During it, the thread of the server ran for about `runMs`, and waited for a core for about `coreMs`; this
 * program did the same for `ownRunMs` and `ownCoreMs`. If the sums are shorter, the server waited for the disk or a lock, or the machine stood still:
 * the thread read `readKib` from the disk, among them the pages of the program of `faults` major page faults. `loopMs`: the longest delay of a timer of the server.
 */
export type Delays = Record<
  'livezMs' | 'runMs' | 'coreMs' | 'readKib' | 'faults' | 'ownRunMs' | 'ownCoreMs' | 'loopMs' | 'tookS',
  number
>;

/** Requests /livez every few milliseconds while `work` runs. */
export async function longestDelays(server: BenchServer, work: () => Promise<void>): Promise<Delays> {
  const agent = new Agent({ keepAlive: true });
  const ended = new AbortController();
  let longest = { livezMs: 0, runMs: 0, coreMs: 0, readKib: 0, faults: 0, ownRunMs: 0, ownCoreMs: 0 };
  await loopDelayMs(server);
  const probing = (async () => {
    for (; !ended.signal.aborted; await sleep(EVERY_MS)) {
      const [before, ownBefore] = [threadUse(server.pid), threadUse(process.pid)];
      const from = performance.now();
      await respond(`${server.url}/livez`, agent);
      const livezMs = performance.now() - from;
      if (livezMs <= longest.livezMs) continue;
      const [use, own] = [since(before, server.pid), since(ownBefore, process.pid)];
      longest = { livezMs, ...use, ownRunMs: own.runMs, ownCoreMs: own.coreMs };
    }
  })();
  const measure = async () => {
    const from = performance.now();
    await work();
    const tookS = (performance.now() - from) / 1_000;
    return { tookS, loopMs: await loopDelayMs(server) };
  };
  const times = await measure().finally(async () => {
    ended.abort();
    await probing;
    agent.destroy();
  });
  return { ...longest, ...times };
}

type ThreadUse = Pick<Delays, 'runMs' | 'coreMs' | 'readKib' | 'faults'>;

/** What the main thread of a process has used so far, as Linux counts it: its times at each tick, of 4 ms or less, and each switch. */
function threadUse(pid: number): ThreadUse {
  const read = (name: string) => readFileSync(`/proc/${pid}/task/${pid}/${name}`, 'latin1');
  const [run, wait] = read('schedstat').split(' ');
  const readBytes = /^read_bytes: (\d+)$/m.exec(read('io'))?.[1];
  // The fields after the name of the program, which may contain spaces, begin with the third.
  const faults = read('stat')
    .replace(/^.*\) /s, '')
    .split(' ')[9];
  return {
    runMs: Number(run) / 1e6,
    coreMs: Number(wait) / 1e6,
    readKib: Number(readBytes) / 1_024,
    faults: Number(faults),
  };
}

function since(before: ThreadUse, pid: number): ThreadUse {
  const after = threadUse(pid);
  return {
    runMs: after.runMs - before.runMs,
    coreMs: after.coreMs - before.coreMs,
    readKib: after.readKib - before.readKib,
    faults: after.faults - before.faults,
  };
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
