import { expect, it } from 'vitest';
import { toCsvLine } from '../../src/cli/csv.ts';

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
  ['\n=x', '"\'\n=x"'],
  ['＝1+1', "'＝1+1"],
  ['＋cmd', "'＋cmd"],
  ['－cmd', "'－cmd"],
  ['＠sum', "'＠sum"],
  ['\tx', "'\tx"],
  ['\rx', '"\'\rx"'],
  ['=HYPERLINK("http://x","y")', '"\'=HYPERLINK(""http://x"",""y"")"'],
  [' =1', ' =1'],
  [-5, '-5'],
  [1.5, '1.5'],
  ['-5', '-5'],
  ['-12.75', '-12.75'],
  ['-1-1', "'-1-1"],
  ['124361091113205017', '124361091113205017'],
  ['ü€', 'ü€'],
])('%j is the cell %s', (value, cell) => {
  expect(toCsvLine([value, 'next'])).toBe(`${cell},next\r\n`);
});
