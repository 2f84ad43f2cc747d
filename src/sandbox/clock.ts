import type { SandboxOptions } from './options.ts';

const FALLBACK_EVERY_S = 10;
const GIVE_UP_AFTER_S = 120;
const PICK_UP_AFTER_S = 15 * 60;

/** The upstream's durations in the caller's milliseconds, i.e. already divided by the speed. */
export type UpstreamClock = {
  blockMs: number;
  finalityMs: number;
  fallbackMs: number;
  giveUpMs: number;
  pickUpMs: number;
  regressAfterMs: number;
  /** Any other duration of the upstream, in the caller's milliseconds. */
  scale(upstreamMs: number): number;
};

export function createClock(options: SandboxOptions): UpstreamClock {
  const scale = (upstreamMs: number) => upstreamMs / options.speed;
  const seconds = (upstreamS: number) => scale(upstreamS * 1000);
  return {
    blockMs: seconds(options.blockTimeS),
    finalityMs: seconds(options.finalityS),
    fallbackMs: seconds(FALLBACK_EVERY_S),
    giveUpMs: seconds(GIVE_UP_AFTER_S),
    pickUpMs: seconds(PICK_UP_AFTER_S),
    regressAfterMs: seconds(options.regressAfterS),
    scale,
  };
}

/** Number of the first tick strictly after atMs on a clock that ticks at multiples of periodMs since the epoch. */
export function nextTick(atMs: number, periodMs: number): number {
  let tick = Math.floor(atMs / periodMs) + 1;
  // The division can round down just below a tick; without this a sender would get the block it just saw final.
  while (tick * periodMs <= atMs) tick += 1;
  return tick;
}
