import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { SandboxOptions } from '../options.ts';

/** Returns a function that waits for the simulated latency, or until `signal` aborts. */
export function createLatency(options: SandboxOptions, signal: AbortSignal): () => Promise<void> {
  const { latencyMs, latencyJitterMs, speed } = options;
  const generator = xoroshiro128plus(options.seed);
  // Each waiting response has a listener; a large number is not a leak.
  setMaxListeners(0, signal);
  return async () => {
    const delayMs = (latencyMs + latencyJitterMs * uniformFloat64(generator)) / speed;
    if (delayMs > 0) await wait(delayMs, undefined, { signal }).catch(() => {});
  };
}
