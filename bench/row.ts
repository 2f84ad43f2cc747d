/** What a figure must reach. Undefined: it is only printed. */
type Target = { least: number } | { most: number };

/** What one round measured, by names of the row's own. */
export type Round = Readonly<Record<string, number>>;

/** One line of the table. Its value is the median over the rounds. */
export type Figure = {
  what: string;
  /** The peer; '–' where there is none. */
  beside: string;
  target?: Target;
  /** What a value is written with: '' for a ratio. */
  unit: string;
  /** Of one round, both sides of which were measured one after the other. */
  value: (round: Round) => number;
  /** Absolute figures, of the medians of everything measured: they say something about this machine only. */
  context: (medians: Round) => string;
};

export type Row = {
  rounds: number;
  figures: readonly Figure[];
  /** Starts what is measured. What it returned is closed whatever happens. */
  open(): Promise<Measuring>;
};

type Measuring = {
  /** Every side once, in an order that changes with the number of the round. The first is number 0, a warm-up that isn't counted. */
  round(index: number): Promise<Round>;
  /** Of the product, after each round, in MiB: it must stay flat. */
  memoryMib?(): number;
  close(): Promise<void>;
};

/** Runs `sides` in this order or, every other round, in the reverse one: what a machine does meanwhile meets both. */
export async function inTurns(index: number, sides: readonly (() => Promise<void>)[]): Promise<void> {
  for (const side of index % 2 === 0 ? sides : sides.toReversed()) await side();
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
}
