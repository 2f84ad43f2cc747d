import { expect, it } from 'vitest';
import { toCsvLine } from '../../src/lib/csv.ts';

it.each<[string | number | null, string]>([
  ['plain', 'plain'],
  [null, ''],
  ['', ''],
  ['a,b', '"a,b"'],
  ['say "yes"', '"say ""yes"""'],
  ['two\nlines', '"two\nlines"'],
  ['ends in\r', '"ends in\r"'],
  ['=1+1', "'=1+1"],
  ['+cmd', "'+cmd"],
  ['-cmd', "'-cmd"],
  ['@sum', "'@sum"],
  ['\n=x', '"\'\n\'=x"'],
  ['＝1+1', "'＝1+1"],
  ['＋cmd', "'＋cmd"],
  ['－cmd', "'－cmd"],
  ['＠sum', "'＠sum"],
  ['\tx', '"\'\tx"'],
  ['\rx', '"\'\rx"'],
  ['=HYPERLINK("http://x","y")', '"\'=HYPERLINK(""http://x"",""y"")"'],
  [' =1', "' =1"],
  ['\u00a0\u200b\ufeff=1', "'\u00a0\u200b\ufeff=1"],
  ['a;=1+1', '"a;\'=1+1"'],
  ['a; ＝cmd', '"a;\' ＝cmd"'],
  ['a;"=1', '"a;\'""=1"'],
  ['a\t@sum', '"a\t\'@sum"'],
  ['a\n+1;-1-1', '"a\n+1;\'-1-1"'.replace('+1', "'+1")],
  ["=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"],
  ['1;-2;-3.5', '"1;-2;-3.5"'],
  ['{"a":"x;=1","b":-1}', `"{""a"":""x;'=1"",""b"":-1}"`],
  ['-1e-7', "'-1e-7"],
  [-1e-7, '-1e-7'],
  [-5, '-5'],
  [1.5, '1.5'],
  ['-5', '-5'],
  ['-12.75', '-12.75'],
  ['-1-1', "'-1-1"],
  ['999999999999999', '999999999999999'],
  ['1234567890123456', "'1234567890123456"],
  ['-12345678901234.56', "'-12345678901234.56"],
  [' 1234567890123456', "' 1234567890123456"],
  ['007', "'007"],
  ['0.5', '0.5'],
  ['1e5', "'1e5"],
  ['ü€', 'ü€'],
])('%j is the cell %s', (value, cell) => {
  expect(toCsvLine([value, 'next'])).toBe(`${cell},next\r\n`);
});

it('for a terminal, escapes control characters and changes nothing else', () => {
  const cells = ['a\u001b[2J\u009b31m', '\u202eb', '=1', -5];
  expect(toCsvLine(cells, { isTerminal: true })).toBe("a\\u001b[2J\\u009b31m,\\u202eb,'=1,-5\r\n");
});
