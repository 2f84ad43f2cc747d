import { describe, expect, it } from 'vitest';
import { FairQueue, isWithinFairShare } from '../../src/lib/fair-queue.ts';

const drain = (queue: FairQueue<string>) => {
  const items: string[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(item);
  return items.join(' ');
};

describe('a fair queue', () => {
  it('serves clients in turn, and the items of one client in order', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) queue.add(item.slice(0, 1), item);
    expect([queue.clients, queue.peek(), drain(queue), queue.clients, queue.peek()]).toEqual([
      3,
      'a1',
      'a1 b1 c1 a2 c2 a3',
      0,
      undefined,
    ]);
  });

  it('serves a later client before the second item of the others', () => {
    const queue = new FairQueue<string>();
    for (let index = 0; index < 1_000; index++) queue.add('busy', `busy${index}`);
    expect([queue.shift(), queue.shift()]).toEqual(['busy0', 'busy1']);
    queue.add('other', 'other0');
    expect([queue.shift(), queue.shift(), queue.shift()]).toEqual(['busy2', 'other0', 'busy3']);
  });

  it('gives the turn of a client to the others, and keeps its item as its next one', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'a2', 'b1']) queue.add(item.slice(0, 1), item);
    queue.pass();
    expect([queue.size, drain(queue)]).toEqual([3, 'b1 a1 a2']);
    queue.pass();
    expect(queue.peek()).toBeUndefined();
  });

  it('skips clients whose next item is not wanted, and keeps their turns', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'b1', 'a2', 'c1']) queue.add(item.slice(0, 1), item);
    const isWanted = (item: string) => item !== 'a1';
    expect([queue.peek(isWanted), queue.shift(isWanted), queue.shift(isWanted)]).toEqual([
      'b1',
      'b1',
      'c1',
    ]);
    expect([queue.peek(isWanted), queue.shift(isWanted), queue.size]).toEqual([
      undefined,
      undefined,
      2,
    ]);
    for (const item of ['b2', 'c2']) queue.add(item.slice(0, 1), item);
    expect(drain(queue)).toBe('a1 b2 c2 a2');
  });

  it('removes deleted items, and a client with its last item', () => {
    const queue = new FairQueue<string>();
    for (const item of ['a1', 'a2', 'b1']) queue.add(item.slice(0, 1), item);
    queue.delete('b', 'b1');
    queue.delete('b', 'b1');
    queue.delete('a', 'a1');
    expect([queue.clients, queue.sizeOf('a'), queue.sizeOf('b'), drain(queue), queue.size]).toEqual(
      [1, 1, 0, 'a2', 0],
    );
  });

  it('counts an item once for each client that waits for it', () => {
    const queue = new FairQueue<string>();
    for (const client of ['a', 'b', 'a']) queue.add(client, 'shared');
    expect([queue.size, queue.sizeOf('a'), queue.sizeOf('b')]).toEqual([2, 1, 1]);
    queue.delete('b', 'shared');
    expect([queue.size, drain(queue)]).toEqual([1, 'shared']);
  });
});

describe('a client may take more', () => {
  it.each<[string, boolean, Parameters<typeof isWithinFairShare>]>([
    ['below the limit, even all of it', true, [100, { own: 0, all: 0, limit: 100, clients: 1 }]],
    [
      'below the limit, even more than its share',
      true,
      [1, { own: 90, all: 99, limit: 100, clients: 3 }],
    ],
    ['not if it alone uses everything', false, [1, { own: 100, all: 100, limit: 100, clients: 1 }]],
    ['above the limit, up to its share', true, [50, { own: 0, all: 100, limit: 100, clients: 2 }]],
    [
      'above the limit, not more than its share',
      false,
      [51, { own: 0, all: 100, limit: 100, clients: 2 }],
    ],
  ])('%s', (_, expected, [more, state]) => {
    expect(isWithinFairShare(more, state)).toBe(expected);
  });
});
