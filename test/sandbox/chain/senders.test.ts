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

  test('are assigned round robin; assigned at random, some have a backlog while others are idle', () => {
    const finalityS = (senderChoice: 'in_turn' | 'random') => {
      const draws = draw(
        { world: 'usual', senders: 8, senderChoice },
        { count: 3_000, everyS: 16.7 },
      );
      return meanOf(draws.map(({ finalMs, sentMs }) => (finalMs - sentMs) / 1_000));
    };
    // 10 s until the next slot, 1.2 s of empty ones, 20 s for one more block, 2.7 s to finality,
    // 2.1 s to the row.
    expect(Math.abs(finalityS('in_turn') - 36)).toBeLessThan(1);
    expect(finalityS('random')).toBeGreaterThan(39);
  });

  test('are assigned evenly at random', () => {
    const model = modelOf({ ...FAST_CHAIN, senderSkipS: 0, senders: 4, senderChoice: 'random' });
    const ids = submitAtOnce(model, 4_000);
    // All four work to the end only if each has about a quarter: 1,000 ± 4 × 27, half a second
    // each.
    const lastS = Math.max(...ids.map((id) => secondsOf(model, id)));
    expect(lastS).toBeGreaterThan(1_000 * 0.5);
    expect(lastS).toBeLessThan((1_000 + 4 * 27) * 0.52);
  });
});

describe.each([0, 8])('the timeout of %i senders (0: in parallel)', (senders) => {
  // Every block outside a stall begins one: 150 s, of which a submission meets what is left.
  const options = {
    world: 'usual',
    stallRate: 1,
    stallMinS: 150,
    stallMaxS: 150,
    senders,
  } as const;
  const everyMs = 90_000;
  const count = 400;

  /**
   * What lookups would see of each, polled every 0.25 s: states with the seconds since the
   * submission.
   */
  const histories = (() => {
    const model = modelOf(options);
    const open = new Map<string, { sentMs: number; seen: string[] }>();
    const all: { sentMs: number; seen: string[]; attempts: number }[] = [];
    for (let nowMs = START_MS; all.length < count; nowMs += 250) {
      if ((nowMs - START_MS) % everyMs === 0 && nowMs < START_MS + count * everyMs)
        open.set(model.submit('data', nowMs), { sentMs: nowMs, seen: [] });
      for (const [id, history] of open) {
        const row = model.read(id, nowMs);
        const state = row?.error ? `${row.state} ${row.error}` : row?.state;
        const seconds = (nowMs - history.sentMs) / 1_000;
        if (history.seen.at(-1)?.split('@')[0] !== state) history.seen.push(`${state}@${seconds}`);
        if (row?.state !== 'Finalized') continue;
        all.push({ ...history, attempts: row.attempts });
        open.delete(id);
      }
    }
    return all;
  })();

  test('changes a row to Error TIMEOUT 120 s after the submission was sent', () => {
    const failed = histories.filter(({ seen }) => seen.length > 2);
    expect(failed.length).toBeGreaterThan(count / 20);
    expect(failed.length).toBeLessThan(count);
    for (const { seen } of failed) {
      expect(seen[0]).toBe('Pending@0');
      expect(seen[1]).toMatch(/^Error TIMEOUT@12\d/);
    }
    // Where a sender is free at once it is exactly 120 s.
    expect(failed.filter(({ seen }) => seen[1] === 'Error TIMEOUT@120').length).toBeGreaterThan(
      failed.length / 2,
    );
  });

  test('is followed by further attempts, each at the next run of the fallback job, until one is final', () => {
    for (const { sentMs, seen, attempts } of histories.filter(
      (history) => history.seen.length > 2,
    )) {
      const pendingAgainMs = sentMs + Number(seen[2]?.split('@')[1]) * 1_000;
      expect(seen[2]).toMatch(/^Pending@/);
      expect(pendingAgainMs % 10_000).toBe(0);
      expect(seen.at(-1)).toMatch(/^Finalized@/);
      expect(attempts).toBe(1 + seen.filter((state) => state.startsWith('Error')).length);
    }
  });

  test('does not apply to submissions that are final in time', () => {
    for (const { seen, attempts } of histories.filter((history) => history.seen.length === 2)) {
      expect(attempts).toBe(1);
      expect(Number(seen[1]?.split('@')[1])).toBeLessThanOrEqual(120.25);
    }
  });
});
