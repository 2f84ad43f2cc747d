import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseSse, type SseBlock } from '../../src/client/sse.ts';

async function blocksOf(chunks: readonly Uint8Array[]) {
  async function* stream() {
    yield* chunks;
  }
  const blocks: SseBlock[] = [];
  for await (const block of parseSse(stream())) blocks.push(block);
  return blocks;
}

const bytes = (text: string) => new TextEncoder().encode(text);

it.each<[string, string, { id?: string; data?: string }[]]>([
  ['an event', 'id: 7\nevent: a\ndata: {"x":1}\n\n', [{ id: '7', data: '{"x":1}' }]],
  ['a position alone', ': heartbeat\nid: 9\n\n', [{ id: '9' }]],
  ['data over several lines', 'data: a\ndata: b\ndata:\n\n', [{ data: 'a\nb\n' }]],
  [
    'one space after the colon, and no more',
    'data:a\n\ndata:  b\n\n',
    [{ data: 'a' }, { data: ' b' }],
  ],
  ['unknown fields', 'foo: 1\nbar\ndata: a\nretry: 5\n\n', [{ data: 'a' }]],
  ['a byte order mark', '\ufeffdata: a\n\n', [{ data: 'a' }]],
  ['an id with a NUL, which does not count', 'id: a\0b\ndata: a\n\n', [{ data: 'a' }]],
  ['an event that is cut off', 'data: a\n\nid: 8\ndata: b\n', [{ data: 'a' }]],
])('reads %s', async (_, text, expected) => {
  const all = expected.map((block) => ({ id: undefined, data: undefined, ...block }));
  expect(await blocksOf([bytes(text)])).toEqual(all);
});

it('reads the same events for every split into chunks and every kind of line end', async () => {
  const blocks = fc.array(
    fc.record({
      id: fc.nat().map(String),
      lines: fc.array(fc.stringMatching(/^[^\r\n]*$/), { minLength: 1 }),
    }),
    { minLength: 1, maxLength: 5 },
  );
  await fc.assert(
    fc.asyncProperty(
      blocks,
      fc.constantFrom('\n', '\r', '\r\n'),
      fc.infiniteStream(fc.nat(6)),
      async (all, end, sizes) => {
        const lines = all.flatMap(({ id, lines }) => [
          `id: ${id}`,
          ...lines.map((line) => `data: ${line}`),
          '',
        ]);
        const stream = bytes(
          lines
            .map((line) => line + end)
            .join('')
            .toWellFormed(),
        );
        const chunks: Uint8Array[] = [];
        for (let at = 0; at < stream.length; at += chunks.at(-1)?.length || 1)
          chunks.push(stream.slice(at, at + 1 + Number(sizes.next().value)));
        const expected = all.map(({ id, lines }) => ({
          id,
          data: lines.join('\n').toWellFormed(),
        }));
        expect(await blocksOf(chunks)).toEqual(expected);
      },
    ),
    { numRuns: 200 },
  );
});
