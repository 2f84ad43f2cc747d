import { expect, it } from 'vitest';
import { textMatcher } from '../../src/submissions/search.ts';

const METADATA = {
  order: 4711,
  'a.b=c "d"': 'Say "hi" \\ Ü\n\u0001 end',
  nested: { list: [{ deep: 'Inner' }, true, null, 0.5, 1e21] },
};
const isFound = (text: string) => textMatcher(text)('Id-1', JSON.stringify(METADATA));

it.each([
  ...['id-', 'D-1', '471', '"HI"', '\\ ü', '\n', '\u0001', 'inner', 'TRU', 'nul', '0.5', '1e+21'],
])('finds %j in an id or a value', (text) => {
  expect(isFound(text)).toBe(true);
});

it.each([
  ...[
    'order',
    'a.b',
    '=c',
    'nested',
    'deep',
    'list',
    '{',
    '[',
    '"order"',
    '\\n',
    '\\"',
    ':4711',
    '4711,',
    '%',
    '_',
    '*',
  ],
])('does not find %j, which is not in a value', (text) => {
  expect(isFound(text)).toBe(false);
});
