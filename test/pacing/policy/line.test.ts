import { expect, it } from 'vitest';
import { Line } from '../../../src/pacing/policy/line.ts';
import type { Candidate } from '../../../src/pacing/policy.ts';

const candidate = (): Candidate => ({ trackedAt: 0, dueAt: 0, order: 0, openAt: 0 });

it('gives back the places of those that have left, and keeps the order of the others', () => {
  const line = new Line();
  const items = Array.from({ length: 10_000 }, candidate);
  for (const item of items) line.append(item);
  for (const item of items.slice(0, 9_000)) line.remove(item);
  expect(line.first()).toBe(items[9_000]);
  expect(line.begin).toBe(9_001);
  expect(line.get(9_500)).toBe(items[9_499]);
  expect([line.size, line.end]).toEqual([1_000, 10_001]);
  for (const item of items.slice(9_000)) line.remove(item);
  expect(line.first()).toBeUndefined();
  expect(line.append(candidate())).toBe(10_001);
});
