import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

const RANGE = 2 ** 30;

/** Random choices of one part of a simulation. */
export type Random = ReturnType<typeof createRandom>;

/**
 * Parts with names of their own stay the same when another part draws more numbers or is left out.
 */
export function createRandom(seed: number, part: string) {
  let hash = seed | 0;
  for (const character of part) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193);
  const generator = xoroshiro128plus(hash);
  /** Returns a number from 0 to 1, without 1. */
  const next = () => uniformInt(generator, 0, RANGE - 1) / RANGE;
  return {
    next,
    chance: (probability: number) => next() < probability,
    /** Returns an integer, both limits included. */
    between: (min: number, max: number) => uniformInt(generator, min, max),
    pick: <T>(choices: readonly T[]) => choices[uniformInt(generator, 0, choices.length - 1)] as T,
    /**
     * Returns the time until the next of events that happen at random, `meanMs` apart on average.
     */
    waitMs: (meanMs: number) => Math.ceil(-meanMs * Math.log(1 - next())),
    bytes(size: number): Buffer {
      const bytes = Buffer.alloc(size);
      for (let at = 0; at < size; at++) bytes[at] = uniformInt(generator, 0, 255);
      return bytes;
    },
  };
}
