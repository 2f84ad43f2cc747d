import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';

/** Items that are written in one turn of the event loop. */
export const ITEMS_PER_TURN = 250;

/**
 * Yields the text of the items between `head` and `tail` in parts, and lets other work run between
 * them.
 */
export async function* textOf<Item>(
  head: string,
  items: Iterable<Item>,
  write: (item: Item) => string,
  tail = '',
): AsyncGenerator<string, void> {
  let [text, count] = [head, 0];
  for (const item of items) {
    text += write(item);
    count += 1;
    if (count % ITEMS_PER_TURN > 0) continue;
    yield text;
    text = '';
    await setImmediate();
  }
  yield `${text}${tail}`;
}

/**
 * Returns a JSON object with a long list as a stream. `head` and `tail` are the fields before and
 * after the list.
 */
export function jsonStream<Item>(
  before: object,
  [name, items, shown]: readonly [
    name: string,
    items: Iterable<Item>,
    shown: (item: Item) => unknown,
  ],
  after: object = {},
): Readable {
  const [head, tail] = [JSON.stringify(before).slice(0, -1), JSON.stringify(after).slice(1)];
  let comma = '';
  const write = (item: Item) => {
    const text = `${comma}${JSON.stringify(shown(item))}`;
    comma = ',';
    return text;
  };
  return Readable.from(
    textOf(`${head},"${name}":[`, items, write, `]${tail === '}' ? '' : ','}${tail}`),
  );
}
