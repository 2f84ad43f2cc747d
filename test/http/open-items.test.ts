import { expect, it } from 'vitest';
import { OpenItems } from '../../src/http/open-items.ts';

const named = (name: string) => ({ name });

it('contains the items that were not removed', () => {
  const items = new OpenItems<{ name: string }>();
  const [removeA] = ['a', 'b', 'c'].map((name) => items.add(named(name)));
  removeA?.();
  expect([...items]).toEqual([named('b'), named('c')]);
});

it('gives a free place to the next item, which a second removal of the earlier one does not remove', () => {
  const items = new OpenItems<{ name: string }>();
  const remove = items.add(named('a'));
  remove();
  items.add(named('b'));
  remove();
  items.add(named('c'));
  expect([...items]).toEqual([named('b'), named('c')]);
});

it('can be changed while it is iterated', () => {
  const items = new OpenItems<{ name: string }>();
  const removals = ['a', 'b', 'c'].map((name) => items.add(named(name)));
  const seen: string[] = [];
  for (const { name } of items) {
    seen.push(name);
    for (const remove of removals) remove();
  }
  expect(seen).toEqual(['a']);
  expect([...items]).toEqual([]);
});
