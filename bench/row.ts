/** The bound that a metric must respect. A metric without a target is only printed. */
type Target = { min: number } | { max: number };

/** The measurements of one round, by names that the row defines. */
export type Round = Readonly<Record<string, number>>;

/** One line of the table. Its value is the median of all rounds. */
export type Metric = {
  what: string;
  /** The peer. */
  beside?: string;
  target?: Target;
  /** The unit that follows the value; '' for a ratio. */
  unit: string;
  /** Returns the value of one round, whose sides were measured one after the other. */
  value: (round: Round) => number;
  /**
   * Returns absolute values from the medians of all measurements; they are valid for this machine
   * only.
   */
  context: (medians: Round) => string;
};

export type Row = {
  rounds: number;
  metrics: readonly Metric[];
  /** Starts the measured processes. The caller always closes the returned object. */
  open(): Promise<Measuring>;
};

type Measuring = {
  /**
   * Measures every side once, in an order that depends on the number of the round. Round 0 is a
   * warm-up that does not count.
   */
  round(index: number): Promise<Round>;
  /** Memory of dawatch after each round, in MiB; it must not grow. */
  memoryMib?(): number;
  close(): Promise<void>;
};

/**
 * Runs `sides` in this order and, every other round, in reverse, so that other load on the machine
 * affects both sides.
 */
export async function inTurns(
  index: number,
  sides: readonly (() => Promise<void>)[],
): Promise<void> {
  for (const side of index % 2 === 0 ? sides : sides.toReversed()) await side();
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [
    sorted[Math.ceil(sorted.length / 2) - 1],
    sorted[Math.floor(sorted.length / 2)],
  ];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
}
