import { describe, expect, it } from 'vitest';
import { billingOf, groupOf, type ReportGroup } from '../../src/reports/roll-up.ts';

describe('the billed amounts of an upstream', () => {
  it.each<[unknown, bigint | undefined]>([
    ['124361091113205017', 124361091113205017n],
    ['999999999999999999999999999999999999999', 999999999999999999999999999999999999999n],
    ['-5', -5n],
    [17, 17n],
    [2 ** 53, undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['', undefined],
    ['9'.repeat(61), undefined],
    [undefined, undefined],
  ])('%j is %s', (fees, amount) => {
    expect(billingOf({ fees, data_billed: '4' })).toEqual({ fees: amount, dataBilled: 4n });
  });

  it('are missing without data', () => {
    expect(billingOf(null)).toEqual({ fees: undefined, dataBilled: undefined });
  });
});

const value = (text: string) => ({ kind: 'value', value: text }) as const;
it.each<[unknown, ReportGroup]>([
  ['billing', value('billing')],
  [4711, value('4711')],
  [true, value('true')],
  ['x'.repeat(65), { kind: 'other' }],
  ['\ud800', value('\ufffd')],
  [null, { kind: 'none' }],
  [{ a: 1 }, { kind: 'none' }],
])('submissions with the metadata value %j are in the group %j', (team, group) => {
  expect(groupOf({ team }, 'team')).toEqual(group);
  expect(groupOf({ other: team }, 'team')).toEqual({ kind: 'none' });
});

it('a name of the prototype is no value', () => {
  expect(groupOf({}, 'constructor')).toEqual({ kind: 'none' });
  expect(groupOf(null, 'team')).toEqual({ kind: 'none' });
});
