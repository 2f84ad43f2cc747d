import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { digest, seedOf } from './digest.ts';

/**
 * Returns a stream of random numbers that is a pure function of the parts. Each call consumes
 * exactly one number, so that runs with different options stay comparable.
 */
export function createRandomStream(...parts: readonly (string | number)[]) {
  const generator = xoroshiro128plus(seedOf(digest(...parts)));
  const uniform = () => uniformFloat64(generator);
  return {
    /** Uniform from 0 (inclusive) to 1 (exclusive). */
    uniform,
    /** Uniform from min to max. */
    between: (min: number, max: number) => min + (max - min) * uniform(),
    exponential: (mean: number) => -mean * Math.log(1 - uniform()),
    happens: (probability: number) => uniform() < probability,
  };
}
