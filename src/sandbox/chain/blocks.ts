import type { UpstreamClock } from '../clock.ts';
import type { SandboxOptions } from '../options.ts';
import { createRandomStream } from './random-stream.ts';

/** Time of slot 0 (Avail's main network started in July 2024). */
const GENESIS_MS = Date.UTC(2024, 6, 4);

/** A block and the completion time of the finality round that it starts (epoch ms). */
export type Block = { number: number; producedMs: number; roundCompletedMs: number };

/** Returns the next block with each call. */
export type BlockSource = () => Block;

/**
 * Returns a source of blocks from the slot that contains startMs (epoch ms). Slots begin at
 * multiples of the slot time since the epoch. An empty slot has no block and no block number.
 *
 * A round ends roundMinS + exp(roundTailMeanS) after its block. A stall begins at a block: the
 * rounds of that and all later blocks until its end are completed together afterwards. Stalls do
 * not overlap.
 */
export function createBlockSource(
  options: SandboxOptions,
  clock: UpstreamClock,
  startMs: number,
): BlockSource {
  const { emptySlotRate, blockDelayMinS, blockDelayMaxS, roundMinS, roundTailMeanS } = options;
  const { stallRate, stallMinS, stallMaxS } = options;
  const { slotMs, seconds } = clock;
  const chance = createRandomStream('blocks', options.seed);
  let slot = Math.floor(startMs / slotMs) - 1;
  let number = heightAt(startMs) - 1;
  let stallEndMs = Number.NEGATIVE_INFINITY;
  let stallCompletedMs = Number.NEGATIVE_INFINITY;

  function heightAt(atMs: number): number {
    // After a restart, block numbers continue approximately where they were.
    return 1 + Math.max(0, Math.floor(((atMs - GENESIS_MS) / slotMs) * (1 - emptySlotRate)));
  }

  return () => {
    for (;;) {
      slot += 1;
      // Every slot draws all values, so that changing one option does not change the other draws.
      const isEmpty = chance.happens(emptySlotRate);
      const delayMs = seconds(chance.between(blockDelayMinS, blockDelayMaxS));
      const roundMs = seconds(roundMinS + chance.exponential(roundTailMeanS));
      const stalls = chance.happens(stallRate);
      const stallMs = seconds(chance.between(stallMinS, stallMaxS));
      if (isEmpty) continue;

      number += 1;
      const producedMs = slot * slotMs + delayMs;
      if (stalls && producedMs >= stallEndMs) {
        stallEndMs = producedMs + stallMs;
        stallCompletedMs = stallEndMs + roundMs;
      }
      const roundCompletedMs = producedMs < stallEndMs ? stallCompletedMs : producedMs + roundMs;
      return { number, producedMs, roundCompletedMs };
    }
  };
}
