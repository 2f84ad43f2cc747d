import { expect, it } from 'vitest';
import type { Candidate } from '../../src/pacing/index.ts';
import { WaitingLine } from '../../src/pacing/waiting-line.ts';

const candidate = (): Candidate => ({ trackedAt: 0, dueAt: 0, order: 0, openAt: 0 });

it('keeps the order of the remaining submissions when most are removed', () => {
  const line = new WaitingLine();
  const items = Array.from({ length: 10_000 }, candidate);
  for (const item of items) line.append(item);
  for (const item of items.slice(0, 9_000)) line.remove(item);
  expect(line.first).toBe(items[9_000]);
  expect(line.next).toBe(items[9_000]);
  expect([line.size, items[9_500]?.order]).toEqual([1_000, 9_501]);
  for (const item of items.slice(9_000)) line.remove(item);
  expect(line.first).toBeUndefined();
  const last = candidate();
  line.append(last);
  expect([last.order, line.first]).toEqual([10_001, last]);
});

it('finds the first submission after a position without a scan over removed ones', () => {
  const line = new WaitingLine();
  const items = Array.from({ length: 50_000 }, candidate);
  for (const item of items) line.append(item);
  const last = items.at(-1) as Candidate;
  const before = process.cpuUsage();
  for (const item of items.slice(1, -1)) {
    line.remove(item);
    line.firstAfter(1);
  }
  expect(process.cpuUsage(before).user).toBeLessThan(1_000_000);
  expect([line.firstAfter(1), line.firstAfter(0), line.firstAfter(1)]).toEqual([
    last,
    items[0],
    last,
  ]);
  line.remove(last);
  expect(line.firstAfter(1)).toBeUndefined();
  const next = candidate();
  line.append(next);
  expect(line.firstAfter(1)).toBe(next);
});

it('groups submissions that begin to wait in the same slot into a cohort, and drops the oldest cohort as a whole', () => {
  const line = new WaitingLine();
  const items = Array.from({ length: 6 }, candidate);
  for (const item of items) line.append(item);
  for (const [i, item] of items.slice(0, 5).entries())
    line.begin(item, { slot: i < 3 ? 7 : 8, zone: 0 });
  const [first, second] = line.cohorts;
  expect([first?.size, second?.size, line.next]).toEqual([3, 2, items[5]]);
  expect(line.cohortOf(items[4] as Candidate)).toBe(second);
  expect(line.cohortOf(items[5] as Candidate)).toBeNull();
  line.remove(items[1] as Candidate);
  expect([...line.membersOf(first as (typeof line.cohorts)[number], 1)]).toEqual([
    items[2],
    items[0],
  ]);
  expect(line.dropOldest()).toEqual([items[0], items[2]]);
  expect([line.size, line.cohorts, items[0]?.order]).toEqual([3, [second], 0]);
});
