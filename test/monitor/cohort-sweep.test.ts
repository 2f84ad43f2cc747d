import { describe, expect, it } from 'vitest';
import { CohortSweep } from '../../src/monitor/cohort-sweep.ts';
import { type Candidate, NEVER } from '../../src/monitor/policy.ts';
import { WaitingLine } from '../../src/monitor/waiting-line.ts';

/** So many in line, the oldest first, each a second younger than the one before; the first is 60 s old at 0. */
function lineOf(count: number): Candidate[] {
  const line = new WaitingLine();
  return Array.from({ length: count }, (_, index) => {
    const item: Candidate = {
      trackedAt: -60_000 + 1_000 * index,
      dueAt: 0,
      before: null,
      after: null,
      order: 0,
      openAt: NEVER,
    };
    line.append(item);
    return item;
  });
}

function taken(sweep: CohortSweep): Candidate[] {
  const all: Candidate[] = [];
  for (let item = sweep.next(); item; item = sweep.next()) all.push(item);
  return all;
}

/** A sweep that has seen groups of this size, one at every so many blocks. */
function experienced(size: number, distances: number[]): CohortSweep {
  return new CohortSweep({ meanSize: size, youngestMs: [50_000], distances });
}

describe('the sweep', () => {
  it('asks as many as groups have', () => {
    const [first, ...others] = lineOf(9);
    const sweep = experienced(4, []);
    sweep.begin(7, 0, null, first?.after ?? null);
    expect(taken(sweep)).toEqual(others.slice(0, 4));
  });

  it('asks the older ones first, where it begins in the middle of a group', () => {
    const line = lineOf(9);
    const sweep = experienced(4, []);
    sweep.begin(7, 0, line[3] ?? null, line[5] ?? null);
    expect(taken(sweep)).toEqual([line[3], line[2], line[1], line[0]]);
  });

  it('asks nobody younger than anyone ever was', () => {
    const line = lineOf(20);
    const sweep = experienced(20, []);
    sweep.begin(7, 0, null, line[0] ?? null);
    expect(taken(sweep)).toHaveLength(11);
  });

  it('goes on by a quarter more than were found', () => {
    const line = lineOf(12);
    const sweep = experienced(4, []);
    sweep.begin(7, 0, null, line[0] ?? null);
    expect(taken(sweep)).toHaveLength(4);
    for (let found = 0; found < 4; found++) sweep.found(7, 55_000);
    expect(taken(sweep)).toEqual([line[4], line[5]]);
  });

  it.each([
    ['senders that wait for every third block', [3, 3, 3, 3, 3, 3, 3, 3], 10],
    ['groups at any block', [3, 3, 3, 1, 3, 3, 3, 3], 8],
    ['too few groups to tell', [3, 3, 3], 8],
  ])('expects the next group by the distance of those before: %s', (_name, distances, next) => {
    const sweep = experienced(4, distances);
    sweep.begin(7, 0, null, null);
    expect(sweep.nextBlock).toBe(next);
  });
});
