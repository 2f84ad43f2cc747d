import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Due, DueQueue } from '../../src/lib/due-queue.ts';

type Entry = Due & { name: number };
const entry = (name: number, dueAt: number): Entry => ({ name, dueAt, heapIndex: 0 });

function drain(queue: DueQueue<Entry>): Entry[] {
  const out: Entry[] = [];
  for (let next = queue.earliest; next; next = queue.earliest) {
    out.push(next);
    queue.remove(next);
  }
  return out;
}

it('an empty queue has no earliest entry', () => {
  const queue = new DueQueue<Entry>();
  expect(queue.earliest).toBeUndefined();
  const only = entry(1, 5);
  queue.add(only);
  expect(queue.earliest).toBe(only);
  queue.remove(only);
  expect(queue.earliest).toBeUndefined();
});

it('the entries are returned in the order of their due times', () => {
  const queue = new DueQueue<Entry>();
  for (const dueAt of [5, 3, 9, 1, 3, 7, Number.POSITIVE_INFINITY, -2]) queue.add(entry(0, dueAt));
  expect(drain(queue).map(({ dueAt }) => dueAt)).toEqual([
    -2,
    1,
    3,
    3,
    5,
    7,
    9,
    Number.POSITIVE_INFINITY,
  ]);
});

it('a removed entry can be added again', () => {
  const queue = new DueQueue<Entry>();
  const [a, b] = [entry(1, 1), entry(2, 2)];
  queue.add(a);
  queue.add(b);
  queue.remove(a);
  a.dueAt = 3;
  queue.add(a);
  expect(drain(queue)).toEqual([b, a]);
});

type Step = { do: 'add' | 'remove'; which: number; dueAt: number };
const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom('add', 'add', 'remove'),
  which: fc.nat(),
  dueAt: fc.integer({ min: -20, max: 20 }),
});

it('behaves like a sorted array, for any sequence of additions and removals', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
      const queue = new DueQueue<Entry>();
      const model: Entry[] = [];
      for (const [name, { do: what, which, dueAt }] of steps.entries()) {
        const chosen = model[which % Math.max(1, model.length)];
        if (what === 'add' || !chosen) {
          const added = entry(name, dueAt);
          queue.add(added);
          model.push(added);
        } else {
          queue.remove(chosen);
          model.splice(model.indexOf(chosen), 1);
        }
        const earliest = model.length > 0 ? Math.min(...model.map((one) => one.dueAt)) : undefined;
        expect(queue.earliest?.dueAt).toBe(earliest);
        expect(queue.size).toBe(model.length);
      }
      const rest = drain(queue);
      expect(rest.map(({ dueAt }) => dueAt)).toEqual(
        model.map(({ dueAt }) => dueAt).sort((a, b) => a - b),
      );
      expect(new Set(rest)).toEqual(new Set(model));
    }),
    { numRuns: 400 },
  );
});
