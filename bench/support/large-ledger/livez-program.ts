// Requests /livez of a server every few milliseconds from one message to the next, which it replies
// to with the longest response. It does nothing else, because the commands that the benchmark
// starts, and its own garbage, would delay the responses.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LongestResponse } from './longest-delays.ts';

const EVERY_MS = 5;
/** The first requests of a process take tens of milliseconds. */
const WARM_UP = 50;
const [url = '', serverPid = ''] = process.argv.slice(2);
const server = Number(serverPid);
const agent = new Agent({ keepAlive: true });
process.once('disconnect', () => process.exit());

for (let request = 0; request < WARM_UP; request++) await respond(`${url}/livez`);
process.send?.('ready');
await once(process, 'message');
let isOver = false;
process.once('message', () => {
  isOver = true;
});
let longest: LongestResponse = {
  livezMs: 0,
  runMs: 0,
  coreMs: 0,
  readKib: 0,
  faults: 0,
  ownRunMs: 0,
  ownCoreMs: 0,
};
for (; !isOver; await sleep(EVERY_MS)) {
  const [before, ownBefore] = [threadUse(server), threadUse(process.pid)];
  const from = performance.now();
  await respond(`${url}/livez`);
  const livezMs = performance.now() - from;
  if (livezMs <= longest.livezMs) continue;
  const [use, own] = [since(before, server), since(ownBefore, process.pid)];
  longest = { livezMs, ...use, ownRunMs: own.runMs, ownCoreMs: own.coreMs };
}
process.send?.(longest);

type ThreadUse = Pick<LongestResponse, 'runMs' | 'coreMs' | 'readKib' | 'faults'>;

/**
 * What the main thread of a process has used so far, as Linux counts it: its times at each tick, of
 * 4 ms or less, and each switch.
 */
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

function respond(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => response.resume().on('end', resolve)).on('error', reject);
  });
}
