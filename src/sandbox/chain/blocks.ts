import type { UpstreamClock } from '../clock.ts';
import type { SandboxOptions } from '../options.ts';
import { createRandomStream } from './random-stream.ts';

/** The chain counts its slots from here on (Avail's main network began in July 2024). */
const GENESIS_MS = Date.UTC(2024, 6, 4);

/** A block, and when the finality round that it starts is completed (epoch ms). */
export type Block = { number: number; producedMs: number; roundCompletedMs: number };

/** Produces the blocks one after the other, each call the next one. */
export type BlockSource = () => Block;

/**
 * The blocks from the slot that startMs (epoch ms) lies in. Slots begin at multiples of the slot time since the epoch; an
 * empty one has no block and delays all later ones, since block numbers count blocks.
 *
 * A round is completed roundMinS + exp(roundTailMeanS) after its block. When finality stalls at a block, the round of
 * that block and those of all blocks produced before the stall ends are completed at one moment after its end. A stall
 * begins only where there is none.
 */
export function createBlockSource(options: SandboxOptions, clock: UpstreamClock, startMs: number): BlockSource {
  const { emptySlotRate, blockDelayMinS, blockDelayMaxS, roundMinS, roundTailMeanS } = options;
  const { stallRate, stallMinS, stallMaxS } = options;
  const { slotMs, seconds } = clock;
  const chance = createRandomStream('blocks', options.seed);
  let slot = Math.floor(startMs / slotMs) - 1;
  let number = heightAt(startMs) - 1;
  let stallEndMs = Number.NEGATIVE_INFINITY;
  let stallCompletedMs = Number.NEGATIVE_INFINITY;

  function heightAt(atMs: number): number {
    // A sandbox that is started again continues about where the last one was.
    return 1 + Math.max(0, Math.floor(((atMs - GENESIS_MS) / slotMs) * (1 - emptySlotRate)));
  }

  return () => {
    for (;;) {
      slot += 1;
      // All are drawn for every slot: changing one option leaves the other draws as they were.
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
