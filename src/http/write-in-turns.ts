import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';

/** Items that are written in one turn of the event loop. */
export const ITEMS_PER_TURN = 250;

/**
 * Returns a JSON object that ends with a long list as a stream, and lets other work run between
 * its parts. `before`: the fields before the list.
 */
export function jsonStream<Item>(
  before: object,
  [name, items, toBody]: readonly [
    name: string,
    items: Iterable<Item>,
    toBody: (item: Item) => unknown,
  ],
): Readable {
  async function* parts() {
    let text = JSON.stringify({ ...before, [name]: [] }).slice(0, -2);
    let count = 0;
    for (const item of items) {
      text += `${count > 0 ? ',' : ''}${JSON.stringify(toBody(item))}`;
      count += 1;
      if (count % ITEMS_PER_TURN > 0) continue;
      yield text;
      text = '';
      await setImmediate();
    }
    yield `${text}]}`;
  }
  return Readable.from(parts());
}
