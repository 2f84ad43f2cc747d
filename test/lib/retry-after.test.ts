import { describe, expect, it } from 'vitest';
import { retryAfterMs } from '../../src/lib/http-call.ts';

const HOUR_MS = 3_600_000;
const wait = (retryAfter: string | null, date: string | null = null) =>
  retryAfterMs({ retryAfter, date });

describe('Retry-After in seconds', () => {
  it.each([
    ['1', 1_000],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['0.5', 500],
    ['7.0005', 7_001],
    ['3600', HOUR_MS],
  ])('%j is %i ms, whatever the Date header says', (text, ms) => {
    expect(wait(text)).toBe(ms);
    expect(wait(text, 'Wed, 21 Oct 2015 07:28:00 GMT')).toBe(ms);
  });

  it.each(['3601', '86400', '999999999'])('%s is limited to an hour', (text) => {
    expect(wait(text)).toBe(HOUR_MS);
  });
});

describe('Retry-After as a Unix time, from a value of 1,000,000,000 on', () => {
  const date = 'Wed, 21 Oct 2026 07:28:00 GMT';
  const at = Date.parse(date) / 1_000;
  it.each([
    [`${at + 42}`, 42_000],
    [`${at + 0.5}`, 500],
    [`${at + 42}000`, 42_000],
    [`${at + 7_200}`, HOUR_MS],
    ['99999999999999999999', HOUR_MS],
    ['9'.repeat(400), HOUR_MS],
    [`${at}`, null],
    ['1000000000', null],
  ])('%s is relative to the Date header', (text, ms) => {
    expect(wait(text, date)).toBe(ms);
    expect(wait(text, null)).toBeNull();
  });
});

describe('Retry-After as a date', () => {
  it.each([
    ['of this year', 'Wed, 21 Oct 2026 07:28:00 GMT', 'Wed, 21 Oct 2026 07:28:42 GMT'],
    [
      'of a clock that is ten years behind',
      'Wed, 21 Oct 2015 07:28:00 GMT',
      'Wed, 21 Oct 2015 07:28:42 GMT',
    ],
    [
      'of a clock that is far ahead',
      'Mon, 31 Dec 2098 23:59:59 GMT',
      'Thu, 01 Jan 2099 00:00:41 GMT',
    ],
    ['in the obsolete format', 'Sunday, 06-Nov-94 08:49:00 GMT', 'Sunday, 06-Nov-94 08:49:42 GMT'],
  ])('is relative to the Date header of the same response: %s', (_name, date, retryAfter) => {
    expect(wait(retryAfter, date)).toBe(42_000);
  });

  it('is limited to an hour', () => {
    expect(wait('Thu, 22 Oct 2026 07:28:00 GMT', 'Wed, 21 Oct 2026 07:28:00 GMT')).toBe(HOUR_MS);
  });

  it('is ignored if it is past or now, or if the response has no Date header', () => {
    const date = 'Wed, 21 Oct 2026 07:28:00 GMT';
    expect(wait(date, date)).toBeNull();
    expect(wait('Wed, 21 Oct 2026 07:27:00 GMT', date)).toBeNull();
    expect(wait(date, null)).toBeNull();
    expect(wait(date, 'yesterday')).toBeNull();
  });
});

describe('an unusable Retry-After', () => {
  const date = 'Wed, 21 Oct 2026 07:28:00 GMT';
  const TEXTS = '0 0.0 -5 +5 1e3 0x10 5s soon NaN Infinity 12abc 2099-01-01'.split(' ');
  it.each([null, '', '  ', '5, 5', ...TEXTS])('%j', (text) => {
    expect(wait(text, date)).toBeNull();
  });
});
