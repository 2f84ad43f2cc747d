import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/**
 * Random numbers of a test, from TEST_SEED or a new seed. The seed is printed, so that a run can be
 * repeated.
 */
export function seeded(name: string) {
  const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`${name}: TEST_SEED=${seed}`);
  const random = xoroshiro128plus(seed);
  return {
    seed,
    /** Returns an integer, both limits included. */
    between: (min: number, max: number) => uniformInt(random, min, max),
    /** Returns a number from 0 to below 1. */
    random: () => uniformInt(random, 0, 2 ** 30 - 1) / 2 ** 30,
  };
}
