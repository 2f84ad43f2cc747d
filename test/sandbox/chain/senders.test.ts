import { describe, expect, test } from 'vitest';
import type { Model } from '../../../src/sandbox/model.ts';
import {
  CHAIN_ONLY,
  distance,
  draw,
  finalByBlock,
  meanOf,
  modelOf,
  plusUniform,
  uniform,
} from '../draws.ts';
import { START_MS } from '../open-sandbox.ts';

/** A chain that is final within a hundredth of a second, so that only the senders cause delays. */
const FAST_CHAIN = {
  world: 'ideal',
  slotS: 0.01,
  finalityGap: 0,
  senderRestS: 0.5,
  senderSkipS: 0.25,
} as const;

const secondsOf = (model: Model, id: string, endMs = START_MS + 1e9) =>
  (Number(model.finalizedAt(id, endMs)) - START_MS) / 1_000;

function submitAtOnce(model: Model, count: number): string[] {
  return Array.from({ length: count }, () => model.submit('data', START_MS));
}

describe('a serial sender that waits for finality', () => {
  const options = { world: 'usual', stallRate: 0, timeoutS: 1e9 } as const;
  // So far apart that none waits for another; the chain is the same for both.
  const pace = { count: 4_000, everyS: 101 };
  const finalMs = finalByBlock(draw({ ...options, ...CHAIN_ONLY }, pace));
  const draws = draw({ ...options, senders: 3 }, pace);

  test('updates the row 0.3 to 3.94 s after finality, with a random phase and its own reading time', () => {
    const delaysS = draws.map(
      (row) => (row.finalMs - (finalMs.get(row.block) ?? Number.NaN)) / 1_000,
    );
    expect(Math.abs(meanOf(delaysS) - (3.1 / 2 + 0.55))).toBeLessThan(0.06);
    expect(Math.min(...delaysS)).toBeGreaterThan(0.3);
    expect(Math.max(...delaysS)).toBeLessThan(3.94);
    expect(distance(delaysS, plusUniform(uniform(0, 3.1), 0.3, 0.8))).toBeLessThan(1.95);
  });

  test('polls every 3.06 to 3.14 s, counted from its own submission', () => {
    for (const row of draws) {
      const tookS = (row.finalMs - row.sentMs) / 1_000;
      const polls = [...Array(60).keys()].map((index) => index + 1);
      expect(
        polls.some((count) => count * 3.06 + 0.3 <= tookS && tookS <= count * 3.14 + 0.8),
      ).toBe(true);
    }
    // So a row is never updated at some times after its submission; the twelfth poll is at 36.7 to
    // 37.7 s.
    expect(
      draws.some(({ finalMs: ms, sentMs }) => ms - sentMs > 35_340 && ms - sentMs < 37_020),
    ).toBe(false);
  });
});

describe('the delay between two submissions', () => {
  test('is 0.5 s for a single sender', () => {
    const model = modelOf({ ...FAST_CHAIN, senders: 1 });
    const finalS = submitAtOnce(model, 200).map((id) => secondsOf(model, id));
    const apart = finalS.slice(1).map((second, index) => second - Number(finalS[index]));
    for (const second of apart) {
      expect(second).toBeGreaterThanOrEqual(0.5);
      expect(second).toBeLessThan(0.52);
    }
  });

  test.each([2, 3, 8])(
    'is 0.25 s longer for each message to one of the others, of %i senders',
    (senders) => {
      const model = modelOf({ ...FAST_CHAIN, senders });
      const finalS = submitAtOnce(model, 20 * senders).map((id) => secondsOf(model, id));
      const apart = finalS
        .slice(2 * senders)
        .map((second, index) => second - Number(finalS[senders + index]));
      const restS = 0.5 + 0.25 * (senders - 1);
      for (const second of apart) {
        expect(second).toBeGreaterThan(restS - 1e-6);
        expect(second).toBeLessThan(restS + 0.02);
      }
    },
  );

  test('applies to idle senders as well, for the messages before their own', () => {
    const model = modelOf({ ...FAST_CHAIN, senders: 3 });
    const finalS = submitAtOnce(model, 3).map((id) => secondsOf(model, id));
    for (const [index, second] of finalS.entries())
      expect(second - 0.25 * index).toBeCloseTo(0.01, 2);
  });
});

describe('senders with a backlog', () => {
  test.each([
    [3, 'calm', 0.01],
    [8, 'usual', 0.03],
    [8, 'rough', 0.1],
  ] as const)('send %i in two blocks in the world %s', (senders, world, empty) => {
    const model = modelOf({ world, senders, stallRate: 0, timeoutS: 1e9 });
    const ids = submitAtOnce(model, 400 * senders);
    // Each waits for one more block, and the rest of that slot suffices for polling, updating and
    // the delay.
    const perS = ids.length / Math.max(...ids.map((id) => secondsOf(model, id)));
    expect(Math.abs(perS / (senders / ((2 * 20) / (1 - empty))) - 1)).toBeLessThan(0.03);
  });
});
