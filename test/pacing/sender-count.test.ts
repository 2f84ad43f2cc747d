import { expect, it } from 'vitest';
import { SenderCount } from '../../src/pacing/sender-queue.ts';

it.each([1, 3, 8])(
  '%d serial senders are recognized by how long submissions wait to be sent',
  (count) => {
    const senders = new SenderCount();
    const free = Array.from({ length: count }, () => 0);
    for (let order = 1; order <= 150; order++) {
      const sender = free.indexOf(Math.min(...free));
      const slot = (free[sender] as number) + 2;
      free[sender] = slot;
      senders.learn(order, 0, slot, Math.floor, 1);
      senders.depart(slot);
    }
    expect(senders.best).toBe(count);
  },
);

it('serial senders are dropped when submissions no longer wait for them', () => {
  const senders = new SenderCount(3);
  for (let order = 1; order <= 200; order++) {
    // Final two slots after tracking, and ten slots apart: no number of senders explains this
    // better than another.
    senders.learn(order, 10 * order, 10 * order + 2, Math.floor, 1);
    senders.depart(10 * order + 2);
  }
  expect(senders.best).toBe(Number.POSITIVE_INFINITY);
});
