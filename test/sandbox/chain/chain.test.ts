import { describe, expect, test } from 'vitest';
import { createModel } from '../../../src/sandbox/model.ts';
import { sandboxOptionsSchema } from '../../../src/sandbox/options.ts';
import { START_MS } from '../open-sandbox.ts';

describe('heads', () => {
  /** Rows become final with their block. */
  const openRough = () =>
    createModel(
      sandboxOptionsSchema.parse({
        world: 'rough',
        rowDelayMs: 0,
        rowUpdateMinS: 0,
        rowUpdateMaxS: 0,
        timeoutS: 1e9,
      }),
    );
  const endMs = START_MS + 4 * 3_600_000;

  /** Waits for each head in turn, and submits at the given times. */
  function follow(submitMs: readonly number[], changes: readonly [number, number][] = []) {
    const model = openRough();
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

  test('of the newest 1,000 blocks are kept', () => {
    const model = openRough();
    expect(model.heads(-1, START_MS)).toEqual([]);
    expect(model.heads(-1, START_MS + 1e8)).toHaveLength(1_000);
  });
});
