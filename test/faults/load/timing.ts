/** The number of samples of both inputs together. */
const SAMPLES = 4_000;
/** Calls per sample, so that its duration is long compared with the resolution of the clock. */
const CALLS = 20;
const WARM_UP = 300;
/** Drops the slowest tenth, which other load on the machine causes. */
const KEPT = 0.9;
/**
 * The limit of Welch's t above which a difference is not random; dudect uses the same for
 * "definitely not constant time".
 */
const BOUND = 10;
const TRIES = 3;

/**
 * Returns whether the duration of a call reveals which of two inputs it got, in every attempt and
 * in the same direction.
 */
export function distinguishByTime<Input>(
  chance: { between: (min: number, max: number) => number },
  inputs: readonly [Input, Input],
  call: (input: Input) => boolean,
): boolean {
  const found = Array.from({ length: TRIES }, () => {
    const times: [number[], number[]] = [[], []];
    for (let sample = -WARM_UP; sample < SAMPLES; sample++) {
      const side = chance.between(0, 1) as 0 | 1;
      const took = timeOf(() => call(inputs[side]));
      if (sample >= 0) times[side].push(took);
    }
    return welch(cropped(times[0]), cropped(times[1]));
  });
  console.log(`t: ${found.map((t) => t.toFixed(1)).join(', ')}`);
  return found.every((t) => t > BOUND) || found.every((t) => t < -BOUND);
}

function timeOf(call: () => boolean): number {
  const from = process.hrtime.bigint();
  for (let index = 0; index < CALLS; index++)
    if (call()) throw new Error('this was to be a wrong guess');
  return Number(process.hrtime.bigint() - from);
}

function cropped(times: number[]): number[] {
  return times.sort((a, b) => a - b).slice(0, Math.floor(times.length * KEPT));
}

function welch(one: readonly number[], other: readonly number[]): number {
  const [a, b] = [spreadOf(one), spreadOf(other)];
  return (a.mean - b.mean) / Math.sqrt(a.variance / one.length + b.variance / other.length);
}

function spreadOf(values: readonly number[]): { mean: number; variance: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance =
    values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  return { mean, variance };
}
