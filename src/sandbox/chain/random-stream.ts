import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { digest, seedOf } from './digest.ts';

/** A stream of random numbers. Each call consumes exactly one number, so that runs with different options stay comparable. */
export type RandomStream = {
  /** Uniform from 0 (inclusive) to 1 (exclusive). */
  uniform(): number;
  /** Uniform from min to max. */
  between(min: number, max: number): number;
  exponential(mean: number): number;
  happens(probability: number): boolean;
};

/** Returns a stream that is a pure function of the parts. */
export function createRandomStream(...parts: readonly (string | number)[]): RandomStream {
  const generator = xoroshiro128plus(seedOf(digest(...parts)));
  const uniform = () => uniformFloat64(generator);
  return {
    uniform,
    between: (min, max) => min + (max - min) * uniform(),
    exponential: (mean) => -mean * Math.log(1 - uniform()),
    happens: (probability) => uniform() < probability,
  };
}
