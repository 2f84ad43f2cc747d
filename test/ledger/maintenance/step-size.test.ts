import { expect, it, vi } from 'vitest';
import { StepSize } from '../../../src/ledger/maintenance/step-size.ts';

it('begins with one row, doubles up to the maximum, and halves while a row takes long', () => {
  let now = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  const size = new StepSize(20);
  const sizes = (steps: number, msPerRow: number) =>
    Array.from({ length: steps }, () =>
      size.run((rows) => {
        now += rows * msPerRow;
        return rows;
      }),
    );
  expect(sizes(7, 0.1)).toEqual([1, 2, 4, 8, 16, 20, 20]);
  expect(sizes(5, 4)).toEqual([20, 10, 5, 2, 4]);
  expect(sizes(4, 100)).toEqual([2, 1, 1, 1]);
  expect(sizes(3, 0.1)).toEqual([1, 2, 4]);
  clock.mockRestore();
});
