/** The times at which submissions are made, ms after the start, ascending. */
export type Arrivals = { submissions: number } & (
  | { kind: 'poisson'; perS: number }
  /** `size` at one moment, again and again, each time after a uniformly random delay. */
  | { kind: 'bursts'; size: number; everyS: number; delayMaxS: number }
  /** The same, but all after the same delay. */
  | { kind: 'regular'; size: number; everyS: number; delayMaxS: number }
);

export function* arrivalsOf(arrivals: Arrivals, random: () => number): Generator<number> {
  let atMs = 0;
  let delayMs = 0;
  for (let index = 0; index < arrivals.submissions; index++) {
    if (arrivals.kind === 'poisson') atMs += (-1_000 * Math.log(1 - random())) / arrivals.perS;
    else {
      const isFirst = index % arrivals.size === 0 && (index === 0 || arrivals.kind === 'bursts');
      if (isFirst) delayMs = random() * arrivals.delayMaxS * 1_000;
      atMs = Math.floor(index / arrivals.size) * arrivals.everyS * 1_000 + delayMs;
    }
    yield atMs;
  }
}
