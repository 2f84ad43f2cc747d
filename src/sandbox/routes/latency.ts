import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { SandboxOptions } from '../options.ts';

/** A wait as long as an HTTP answer takes. It ends early when `signal` aborts, so that closing never waits for it. */
export function createLatency(options: SandboxOptions, signal: AbortSignal): () => Promise<void> {
  const { latencyMs, latencyJitterMs, speed } = options;
  const generator = xoroshiro128plus(options.seed);
  // One listener per answer that is waiting: many are no leak here.
  setMaxListeners(0, signal);
  return async () => {
    const delayMs = (latencyMs + latencyJitterMs * uniformFloat64(generator)) / speed;
    if (delayMs > 0) await wait(delayMs, undefined, { signal }).catch(() => {});
  };
}
