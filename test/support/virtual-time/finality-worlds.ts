import type { World } from '../../../bench/pacing/simulate.ts';
import type { Classification } from '../../../src/submissions/classify.ts';

export type Random = () => number;

/** When a submission made at `now` becomes final, and in which block; Infinity: never. */
export type Finality = (now: number, random: Random) => { at: number; block: number | null };

/** An upstream whose submissions become final at the times that `finality` returns. */
export function worldOf(finality: Finality, random: Random): World {
  const rows = new Map<string, { at: number; block: number | null }>();
  return {
    submit(now) {
      const id = `s${rows.size}`;
      rows.set(id, finality(now, random));
      return id;
    },
    respond(id, now) {
      const row = rows.get(id);
      return row && row.at <= now ? final(row.block) : PENDING;
    },
    finalizedAt: (id) => rows.get(id)?.at,
  };
}

export const FINALIZED = {
  kind: 'finalized',
  state: 'Finalized',
  error: null,
  envelope: '',
} as const;

export const PENDING: Classification = {
  kind: 'pending',
  state: 'Pending',
  error: null,
  envelope: '',
  blockNumber: null,
};

function final(blockNumber: number | null): Classification {
  return { ...FINALIZED, blockNumber };
}

const exponential = (mean: number, random: Random) => -mean * Math.log(1 - random());

const aged =
  (ageS: (random: Random) => number): Finality =>
  (now, random) => ({ at: now + 1_000 * ageS(random), block: null });

/**
 * Groups become final at each multiple of the period, `gap` periods after their own, a moment late.
 */
export function periodic(periodS: number, { gap = 1, drift = 0 } = {}): Finality {
  const late = new Map<number, number>();
  return (now, random) => {
    const period = 1_000 * periodS * (1 + drift * Math.sin(now / 1e7));
    const slot = Math.floor(now / period) + 1 + gap;
    const known = late.get(slot) ?? exponential(1_000, random);
    late.set(slot, known);
    return { at: slot * period + known + 1_000 * random(), block: slot };
  };
}

/** Shapes of finality time; seconds from tracking. */
export const SHAPES: Record<string, Finality> = {
  exponential: aged((random) => exponential(30, random)),
  constant: aged(() => 47),
  instant: aged(() => 0),
  'two seconds': aged((random) => 1.5 + random()),
  bimodal: aged((random) => (random() < 0.5 ? 5 + random() : 300 + 20 * random())),
  'three modes': aged(
    (random) => ([2, 40, 900][Math.floor(3 * random())] as number) * (0.9 + 0.2 * random()),
  ),
  'heavy tail': aged((random) => Math.min(20_000, 5 * (1 - random()) ** (-1 / 0.8))),
  'log-normal': aged(
    (random) => 60 * Math.exp(1.2 * (random() + random() + random() + random() - 2) * 1.7),
  ),
  '20 s slots': periodic(20),
  '12.8 s slots, gap 2': periodic(12.8, { gap: 2 }),
  'a period that drifts': periodic(20, { drift: 0.02 }),
  'slow drift of the age': (now, random) => ({
    at: now + 1_000 * (40 + 30 * Math.sin(now / 2e6)) * (0.9 + 0.2 * random()),
    block: null,
  }),
};
