/** The times at which submissions are made, ms after the start, ascending. */
export type Arrivals = { submissions: number } & (
  | { kind: 'poisson'; perS: number }
  | {
      kind: 'bursts';
      size: number;
      everyS: number /** Each burst is delayed by a uniform random time up to this. */;
      delayMaxS: number;
    }
  /** `size` at one moment, again and again; the first time uniformly random up to `startMaxS`. */
  | { kind: 'regular'; size: number; everyS: number; startMaxS: number }
);

export function* arrivalsOf(arrivals: Arrivals, random: () => number): Generator<number> {
  let atMs = 0;
  let delayMs = arrivals.kind === 'regular' ? random() * arrivals.startMaxS * 1_000 : 0;
  for (let index = 0; index < arrivals.submissions; index++) {
    if (arrivals.kind === 'poisson') atMs += (-1_000 * Math.log(1 - random())) / arrivals.perS;
    else {
      if (arrivals.kind === 'bursts' && index % arrivals.size === 0)
        delayMs = random() * arrivals.delayMaxS * 1_000;
      atMs = Math.floor(index / arrivals.size) * arrivals.everyS * 1_000 + delayMs;
    }
    yield atMs;
  }
}
