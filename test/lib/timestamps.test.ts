import { expect, it } from 'vitest';
import { iso } from '../../src/lib/timestamps.ts';
import { seeded } from '../support/seed.ts';

it('formats every time as Date does, in any order and however often', () => {
  const { between } = seeded('iso');
  const around = [
    0,
    Date.parse('2026-01-02T03:04:05Z'),
    -62_167_219_200_000,
    253_402_300_800_000,
    8.64e15 - 10_000_000,
  ];
  for (let count = 0; count < 20_000; count++) {
    const ms = (around[between(0, around.length - 1)] ?? 0) + between(-5_000_000, 5_000_000);
    expect(iso(ms)).toBe(new Date(ms).toISOString());
  }
});

it.each([1.9, -1.9, -0.5, 999.999])('truncates %s ms as Date does', (ms) => {
  expect(iso(ms)).toBe(new Date(ms).toISOString());
});

it.each([Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1])(
  'refuses %s, which is not a time',
  (ms) => {
    expect(() => iso(ms)).toThrow(RangeError);
  },
);
