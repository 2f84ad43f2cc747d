/**
 * A histogram whose old evidence fades exponentially, so that it follows a distribution that
 * changes.
 */
export class Histogram {
  readonly weights: Float64Array;

  constructor(weights: ArrayLike<number>) {
    this.weights = new Float64Array(weights);
  }

  get total(): number {
    let sum = 0;
    for (const weight of this.weights) sum += weight;
    return sum;
  }

  /**
   * Multiplies the weight of all evidence by `keep`. No cell falls below `least`, so that no value
   * ever becomes impossible.
   */
  fade(keep: number, least = 0): void {
    const { weights } = this;
    for (let cell = 0; cell < weights.length; cell++)
      weights[cell] = Math.max(least, (weights[cell] as number) * keep);
  }

  add(cell: number, weight: number): void {
    this.weights[cell] = (this.weights[cell] as number) + weight;
  }

  /**
   * Adds evidence of one value in the cells from `first` to `last`, spread in proportion to
   * `belief` (the self-consistency of Turnbull, J. R. Stat. Soc. B 38, 1976).
   */
  addBetween(
    first: number,
    last: number,
    weight: number,
    belief: ArrayLike<number> = this.weights,
  ): void {
    let sum = 0;
    for (let cell = first; cell <= last; cell++) sum += belief[cell] as number;
    if (!(sum > 0)) return;
    const { weights } = this;
    for (let cell = first; cell <= last; cell++)
      weights[cell] = (weights[cell] as number) + (weight * (belief[cell] as number)) / sum;
  }

  /**
   * Returns a histogram in which, from cell `start` on, this share of each weight is spread evenly
   * over the cells at most `reach` away.
   */
  smoothed(share: number, reach: number, start = 0): Histogram {
    const smooth = new Histogram(this.weights);
    for (let cell = start; cell < this.weights.length; cell++) {
      const spread = share * (this.weights[cell] as number);
      smooth.add(cell, -spread);
      const [first, last] = [
        Math.max(start, cell - reach),
        Math.min(this.weights.length - 1, cell + reach),
      ];
      for (let near = first; near <= last; near++) smooth.add(near, spread / (last - first + 1));
    }
    return smooth;
  }

  /** Returns, for each cell, the probability of a value in it or an earlier cell. */
  cdf(): Float64Array {
    const { total } = this;
    let sum = 0;
    return this.weights.map((weight) => {
      sum += weight;
      return sum / total;
    });
  }
}
