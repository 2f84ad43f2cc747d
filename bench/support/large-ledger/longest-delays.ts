import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchServer } from '../processes.ts';

const PROGRAM = join(import.meta.dirname, 'livez-program.ts');

/**
 * The longest response of /livez, `livezMs`. During it, the thread of the server ran for about
 * `runMs`, and waited for a core for about `coreMs`; the program that sent the request did the same
 * for `ownRunMs` and `ownCoreMs`. If the sums are shorter, the server waited for the disk or a
 * lock, or the machine stood still: the thread read `readKib` from the disk, among them the pages
 * of the program of `faults` major page faults.
 */
export type LongestResponse = Record<
  'livezMs' | 'runMs' | 'coreMs' | 'readKib' | 'faults' | 'ownRunMs' | 'ownCoreMs',
  number
>;

/** `loopMs`: the longest delay of a timer of the server. `tookS`: how long the work took. */
export type Delays = LongestResponse & Record<'loopMs' | 'tookS', number>;

/** Requests /livez every few milliseconds while `work` runs. */
export async function longestDelays(
  server: BenchServer,
  work: () => Promise<void>,
): Promise<Delays> {
  const prober = fork(PROGRAM, [server.url, String(server.pid)]);
  const ended = once(prober, 'exit').then(([code]) =>
    Promise.reject(new Error(`${PROGRAM} ended with ${code}`)),
  );
  // Also while nothing is awaited.
  ended.catch(() => undefined);
  const message = () => Promise.race([once(prober, 'message'), ended]);
  try {
    await message();
    prober.send('begin');
    await loopDelayMs(server);
    const from = performance.now();
    await work();
    const tookS = (performance.now() - from) / 1_000;
    const loopMs = await loopDelayMs(server);
    prober.send('end');
    const [longest] = (await message()) as [LongestResponse];
    return { ...longest, tookS, loopMs };
  } finally {
    prober.kill();
  }
}

/**
 * Returns the longest delay of a timer of the server since the previous call, in milliseconds; each
 * reading resets it.
 */
async function loopDelayMs({ url }: BenchServer): Promise<number> {
  // A text is served again for a second, without being reset.
  await sleep(1_100);
  const text = await (await fetch(`${url}/metrics`)).text();
  return 1_000 * Number(/^nodejs_eventloop_lag_max_seconds (.*)$/m.exec(text)?.[1]);
}
