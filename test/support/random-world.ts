import type { World } from '../../bench/pacing/simulate.ts';

/** How a random upstream makes submissions final, and which block it names. */
export type Nature = {
  /** How long one submission takes, milliseconds. */
  lifeMs: (random: () => number, index: number) => number;
  /** `own`: each has a block of its own. `clock`: the number of 20 s since the epoch. `odd`: any of ten. */
  blocks: 'none' | 'own' | 'clock' | 'odd';
  /** Final only at multiples of this; 0: at any moment. */
  clockMs?: number;
  /** Every so many never become final; 0: none. */
  deadEvery?: number;
};

/** An upstream that keeps to no order and to no rule but this. */
export function randomWorld({ lifeMs, blocks, clockMs = 0, deadEvery = 0 }: Nature, random: () => number): World {
  const finalAt = new Map<string, number>();
  const odd = new Map<string, number>();
  const named = (id: string, at: number): number | null => {
    if (blocks === 'none') return null;
    if (blocks === 'own') return Math.floor(at);
    return blocks === 'clock' ? Math.floor(at / (clockMs || 20_000)) : (odd.get(id) ?? 0);
  };
  return {
    submit(now) {
      const index = finalAt.size;
      const id = `s${index}`;
      const at = now + lifeMs(random, index);
      const isDead = deadEvery > 0 && index % deadEvery === 0;
      finalAt.set(id, isDead ? Number.POSITIVE_INFINITY : clockMs > 0 ? Math.ceil(at / clockMs) * clockMs : at);
      odd.set(id, Math.floor(random() * 10));
      return id;
    },
    answer(id, now) {
      const at = finalAt.get(id) ?? Number.POSITIVE_INFINITY;
      if (at > now) return { kind: 'pending', state: 'Pending', error: null, answer: '', blockNumber: null };
      return { kind: 'finalized', state: 'Finalized', error: null, answer: '', blockNumber: named(id, at) };
    },
    finalizedAt: (id) => finalAt.get(id),
  };
}
