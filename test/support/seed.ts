import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** The chance of a test: TEST_SEED, or another one each time. It is printed, so that a run can be repeated. */
export function seeded(name: string) {
  const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`${name}: TEST_SEED=${seed}`);
  const random = xoroshiro128plus(seed);
  return {
    seed,
    /** A whole number, both ends included. */
    between: (least: number, most: number) => uniformInt(random, least, most),
  };
}
