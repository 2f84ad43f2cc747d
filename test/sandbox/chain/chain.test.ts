import { describe, expect, test } from 'vitest';
import {
  CHAIN_ONLY,
  distance,
  draw,
  exponentialPlusUniform,
  finalByBlock,
  meanOf,
  modelOf,
  PRODUCTION_ONLY,
  SLOT_MS,
  uniform,
} from '../draws.ts';
import { START_MS } from '../open-sandbox.ts';

/**
 * The documented values of each world, in seconds: share of empty slots, mean tail of the round,
 * update of the row.
 */
const KNOWN = [
  { world: 'calm', empty: 0.01, tail: 0.4, minS: 0.1, maxS: 0.4 },
  { world: 'usual', empty: 0.03, tail: 0.8, minS: 0.2, maxS: 1 },
  { world: 'rough', empty: 0.1, tail: 2, minS: 0.2, maxS: 2 },
] as const;

const intoSlotS = (ms: number) => (ms % SLOT_MS) / 1_000;
const slotOf = (ms: number) => Math.floor(ms / SLOT_MS);

describe.each(KNOWN)('in the world $world', ({ world, empty, tail, minS: least, maxS: most }) => {
  const blocks = [...finalByBlock(draw({ world, ...PRODUCTION_ONLY }))].map(
    ([number, producedMs]) => ({
      number,
      producedMs,
    }),
  );
  const pairs = blocks.slice(1).map((block, index) => ({ before: blocks[index] ?? block, block }));

  test('block numbers count blocks, and slots are empty as often as documented', () => {
    expect(pairs.every(({ before, block }) => block.number === before.number + 1)).toBe(true);
    const slots = pairs.map(
      ({ before, block }) => slotOf(block.producedMs) - slotOf(before.producedMs),
    );
    const total = slots.reduce((sum, count) => sum + count, 0);
    const deviation = Math.sqrt((empty * (1 - empty)) / total);
    expect(Math.abs(1 - pairs.length / total - empty)).toBeLessThan(4 * deviation);
    // Empty slots are independent of each other.
    const apart = (count: number) => slots.filter((slot) => slot === count).length / slots.length;
    for (const count of [1, 2, 3])
      expect(Math.abs(apart(count) - (1 - empty) * empty ** (count - 1))).toBeLessThan(
        4 * deviation + 0.002,
      );
  });

  test('a block is produced between 0.1 and 0.7 s into its slot, evenly', () => {
    expect(
      distance(
        blocks.map(({ producedMs }) => intoSlotS(producedMs)),
        uniform(0.1, 0.7),
      ),
    ).toBeLessThan(1.95);
  });

  test('the time from the slot of the finalizing block to finality is 0.1 to 0.7 s + 1.5 s + an exponential tail', () => {
    const finals = [...finalByBlock(draw({ world, ...CHAIN_ONLY, stallRate: 0 })).values()];
    const sample = [...new Set(finals)].map(intoSlotS);
    const cdf = exponentialPlusUniform(tail, 1.6, 2.2);
    expect(Math.abs(meanOf(sample) - (0.4 + 1.5 + tail))).toBeLessThan(
      (5 * tail) / Math.sqrt(sample.length),
    );
    expect(distance(sample, cdf)).toBeLessThan(1.95);
  });

  test('a row is updated later by the documented delay, each independently', () => {
    const options = { world, stallRate: 0 } as const;
    const finalMs = finalByBlock(draw({ ...options, ...CHAIN_ONLY }, { count: 3_000, everyS: 1 }));
    const delaysS = draw(options, { count: 3_000, everyS: 1 }).map(
      (row) => (row.finalMs - (finalMs.get(row.block) ?? Number.NaN)) / 1_000,
    );
    expect(distance(delaysS, uniform(least, most))).toBeLessThan(1.95);
    expect(new Set(delaysS).size).toBeGreaterThan(2_900);
  });
});

test('a transaction is included in the first block produced after it was sent', () => {
  const draws = draw({ ...PRODUCTION_ONLY }, { everyS: 3 });
  const producedMs = finalByBlock(draws);
  for (const { sentMs, block, finalMs } of draws) {
    expect(finalMs).toBeGreaterThan(sentMs);
    expect(producedMs.get(block - 1) ?? 0).toBeLessThanOrEqual(sentMs);
  }
});

describe('the finality gap', () => {
  const instant = { ...CHAIN_ONLY, roundMinS: 0, roundTailMeanS: 0, stallRate: 0 };
  const producedMs = finalByBlock(draw({ ...PRODUCTION_ONLY }, { count: 1_000 }));

  test.each([0, 2])('of %i is the number of blocks that must follow a block', (finalityGap) => {
    for (const { block, finalMs } of draw({ ...instant, finalityGap }, { count: 900 }))
      expect(finalMs).toBe(producedMs.get(block + finalityGap));
  });

  test.each([
    [2, 1],
    [0, 3],
  ])(
    'that changes from %i to %i applies to rounds of later blocks, and ancestors become final with their descendant',
    (before, after) => {
      const model = modelOf({ ...instant, finalityGap: before });
      const changeMs = START_MS + 60_000 * 60;
      const sent = Array.from({ length: 900 }, (_, index) => START_MS + index * 15_000);
      const ids = sent.map((sentMs) => {
        if (sentMs >= changeMs && sentMs < changeMs + 15_000) model.setFinalityGap(after, changeMs);
        return model.submit('data', sentMs);
      });
      const endMs = START_MS + 1e8;
      let finalMs = 0;
      for (const id of ids) {
        const block = model.read(id, endMs)?.block?.number ?? Number.NaN;
        // The first round that is far enough ahead by the gap of its own block.
        const round = [...Array(12).keys()].find((ahead) => {
          const roundMs = producedMs.get(block + ahead) ?? Number.NaN;
          return ahead >= (roundMs > changeMs ? after : before);
        });
        expect(model.finalizedAt(id, endMs)).toBe(producedMs.get(block + (round ?? Number.NaN)));
        // No block is final before its ancestors.
        expect(Number(model.finalizedAt(id, endMs))).toBeGreaterThanOrEqual(finalMs);
        finalMs = Number(model.finalizedAt(id, endMs));
      }
    },
  );
});

describe('stalls', () => {
  const rough = { world: 'rough', ...CHAIN_ONLY } as const;
  const count = 30_000;
  const producedMs = finalByBlock(draw({ ...rough, ...PRODUCTION_ONLY }, { count }));
  const finalMs = finalByBlock(draw({ ...rough, finalityGap: 0 }, { count }));
  /** Blocks that are final at one moment, in groups. */
  const groups = [...finalMs].reduce<number[][]>((found, [block, ms]) => {
    const last = found.at(-1);
    if (last?.[0] !== undefined && finalMs.get(last[0]) === ms) last.push(block);
    else found.push([block]);
    return found;
  }, []);
  const delayS = (block: number) =>
    ((finalMs.get(block) ?? Number.NaN) - (producedMs.get(block) ?? Number.NaN)) / 1_000;
  // An exponential tail of mean 2 s reaches 50 s in none of 10^10 rounds.
  const stalled = groups.filter(([first = 0]) => delayS(first) > 60);

  test('begin at 0.5 % of the blocks outside of a stall, and last 60 to 300 s', () => {
    const outside = producedMs.size - stalled.flat().length + stalled.length;
    const deviation = Math.sqrt(0.005 * outside);
    expect(Math.abs(stalled.length - 0.005 * outside)).toBeLessThan(4 * deviation);
    const durationsS = stalled.map(([first = 0]) => delayS(first));
    expect(distance(durationsS, exponentialPlusUniform(2, 61.5, 301.5))).toBeLessThan(1.95);
  });

  test('delay all their blocks to one finalization, while blocks continue', () => {
    for (const group of stalled) {
      const [first = 0] = group;
      const inStallS = group.map(
        (block) => ((producedMs.get(block) ?? 0) - (producedMs.get(first) ?? 0)) / 1_000,
      );
      expect(
        inStallS.every(
          (afterS, index) => group[index] === first + index && afterS <= delayS(first),
        ),
      ).toBe(true);
      // The next one is produced after the stall, or its own round was over no earlier than that of
      // the stall.
      const next = first + group.length;
      expect(finalMs.get(next) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(
        finalMs.get(first) ?? 0,
      );
    }
    const perStall = meanOf(stalled.map((group) => group.length));
    // 180 s on average, a block every 20 / 0.9 s, and the one at which it began.
    expect(perStall).toBeGreaterThan(0.9 * (1 + (180 * 0.9) / 20));
    expect(perStall).toBeLessThan(1.1 * (1 + (180 * 0.9) / 20));
  });
});

describe('heads', () => {
  const rough = { world: 'rough', ...CHAIN_ONLY } as const;
  const endMs = START_MS + 4 * 3_600_000;

  /** Waits for each head in turn, and submits at the given times. */
  function follow(submitMs: readonly number[], changes: readonly [number, number][] = []) {
    const model = modelOf(rough);
    const ids: string[] = [];
    const actions = [
      ...submitMs.map((atMs) => ({ atMs, run: () => ids.push(model.submit('data', atMs)) })),
      ...changes.map(([atMs, gap]) => ({ atMs, run: () => model.setFinalityGap(gap, atMs) })),
    ].sort((a, b) => a.atMs - b.atMs);
    const heads = model.heads(-1, START_MS);
    for (let nowMs = START_MS; nowMs < endMs; ) {
      const action = actions[0];
      const headMs = model.nextHeadAt(nowMs);
      if (action !== undefined && action.atMs <= headMs) {
        nowMs = action.atMs;
        action.run();
        actions.shift();
      } else {
        nowMs = headMs;
        const arrived = model.heads(heads.at(-1)?.number ?? -1, nowMs);
        expect(arrived.map(({ finalMs }) => finalMs)).toEqual(arrived.map(() => nowMs));
        heads.push(...arrived);
      }
    }
    return { heads, model, ids };
  }

  const submitMs = Array.from({ length: 200 }, (_, index) => START_MS + index * 55_000);

  test('announce every block once, in order, when its rows become final', () => {
    const { heads, model, ids } = follow(submitMs, [
      [START_MS + 3_600_000, 2],
      [START_MS + 7_200_000, 1],
    ]);
    expect(heads.length).toBeGreaterThan(500);
    expect(heads.map(({ number }) => number)).toEqual(
      heads.map((_, index) => (heads[0]?.number ?? 0) + index),
    );
    const finalMs = new Map(heads.map((head) => [head.number, head.finalMs]));
    for (const id of ids)
      expect(model.finalizedAt(id, endMs)).toBe(
        finalMs.get(model.read(id, endMs)?.block?.number ?? -1),
      );
    // A stall ends with several of them.
    expect(new Set(finalMs.values()).size).toBeLessThan(finalMs.size);
  });

  test('do not depend on the submissions', () => {
    expect(follow([]).heads).toEqual(follow(submitMs).heads);
  });

  test('of the newest 1,000 blocks are kept', () => {
    const model = modelOf(rough);
    expect(model.heads(-1, START_MS)).toEqual([]);
    expect(model.heads(-1, START_MS + 1e8)).toHaveLength(1_000);
  });
});

describe('the chain', () => {
  test('is the same at another speed, only faster', () => {
    const options = { world: 'rough', senders: 3, errorRate: 0.1 } as const;
    const submitAll = (speed: number) => {
      const model = modelOf({ ...options, speed });
      const ids = Array.from({ length: 300 }, (_, index) =>
        model.submit('data', (START_MS + 30_000 * index) / speed),
      );
      const endMs = (START_MS + 1e8) / speed;
      return ids.map((id) => Math.round(speed * Number(model.finalizedAt(id, endMs)) - START_MS));
    };
    const real = submitAll(1);
    expect(submitAll(10).every((ms, index) => Math.abs(ms - Number(real[index])) <= 1)).toBe(true);
  });
});
