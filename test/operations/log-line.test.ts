import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_LINE_BYTES, toJsonLine } from '../../src/operations/logging/logger.ts';

const HEAD = { level: 'warn', time: '2026-01-02T03:04:05.678Z' };
const lineOf = (fields: object) =>
  `${JSON.stringify({ ...HEAD, ...fields, event: 'http.failed' })}\n`;

describe('a line that is too long', () => {
  it.each<[string, object]>([
    ['a long text', { message: 'x'.repeat(100_000) }],
    ['a text that grows when it is escaped', { message: '\u009b'.repeat(5_000) }],
    [
      'many texts',
      Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`f${at}`, 'x'.repeat(50)])),
    ],
    [
      'short texts',
      { err: { causes: Array.from({ length: 100 }, () => ({ message: 'x'.repeat(5_000) })) } },
    ],
    ['long names', { ['n'.repeat(20_000)]: 1 }],
  ])('is truncated, marked, and keeps its name (%s)', (_, fields) => {
    const written = toJsonLine(lineOf(fields));
    expect(Buffer.byteLength(written)).toBeLessThanOrEqual(MAX_LINE_BYTES);
    expect(JSON.parse(written)).toMatchObject({ ...HEAD, event: 'http.failed', cut: true });
    expect(written.endsWith('}\n')).toBe(true);
  });

  it('keeps only its name if nothing else fits', () => {
    const deep = (depth: number): object =>
      Object.fromEntries(
        Array.from({ length: 10 }, (_, at) => [
          `${at}`,
          depth === 0 ? 'x'.repeat(100) : deep(depth - 1),
        ]),
      );
    expect(JSON.parse(toJsonLine(lineOf(deep(3))))).toEqual({
      ...HEAD,
      event: 'http.failed',
      cut: true,
    });
  });
});

it('a line within the limit stays unchanged', () => {
  const line = lineOf({ message: 'x'.repeat(MAX_LINE_BYTES - lineOf({ message: '' }).length) });
  expect(Buffer.byteLength(line)).toBe(MAX_LINE_BYTES);
  expect(toJsonLine(line)).toBe(line);
  expect(toJsonLine(lineOf({ message: 'äöü 日本 🎉' }))).toBe(lineOf({ message: 'äöü 日本 🎉' }));
});

it('a line with any content is one line of JSON without control characters and keeps its content', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 2_000 }), (message) => {
      const written = toJsonLine(lineOf({ message }));
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      expect(written.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]|\p{Cf}/u);
      expect(JSON.parse(written).message).toBe(JSON.parse(lineOf({ message })).message);
    }),
  );
});
