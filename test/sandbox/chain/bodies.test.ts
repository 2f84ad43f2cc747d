import { expect, test } from 'vitest';
import { createBodies, firstIndexOf } from '../../../src/sandbox/chain/bodies.ts';

test('the oldest bodies are pruned as a whole when there is too much data', () => {
  const seed = 1;
  const bodies = createBodies(seed, 10_000);
  const add = (blockNumber: number, offset: number) =>
    bodies.add(
      { blockNumber, txIndex: firstIndexOf(seed, blockNumber) + offset },
      new Uint8Array(2_000),
    );
  const kept = () =>
    [1, 2, 3, 4].filter((blockNumber) => bodies.extrinsicsOf(blockNumber, 0) !== undefined);
  const hash = add(1, 0);
  for (const [blockNumber, offset] of [
    [1, 1],
    [2, 0],
    [2, 1],
  ] as const)
    add(blockNumber, offset);
  expect(kept()).toEqual([1, 2, 3, 4]);
  add(3, 0);
  expect(kept()).toEqual([2, 3, 4]);
  // A transaction that is added to a pruned block does not make a part of its body.
  expect(add(1, 0)).toBe(hash);
  expect(kept()).toEqual([2, 3, 4]);
  expect(bodies.extrinsicsOf(2, 0)).toHaveLength(firstIndexOf(seed, 2) + 2);
});
