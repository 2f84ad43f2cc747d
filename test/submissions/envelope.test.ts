import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { dataOf, sameData, upstreamTime } from '../../src/submissions/classify.ts';
import {
  envelope,
  FINAL_DATA,
  type Fields,
  finalEnvelope,
  PENDING_DATA,
} from '../support/ledger/domain.ts';

const final = (data: Fields = {}, fields: Fields = {}) =>
  JSON.stringify(finalEnvelope(data, fields));

describe('two envelopes are equal', () => {
  it.each([
    [
      'with and without Z',
      { created_at: '2026-01-02T03:04:05.123456' },
      { created_at: '2026-01-02T03:04:05.123456Z' },
    ],
    [
      'with 3 and 6 digits',
      { created_at: '2026-01-02T03:04:05.123' },
      { created_at: '2026-01-02T03:04:05.123000Z' },
    ],
    [
      'with 0 and 6 digits',
      { created_at: '2026-01-02T03:04:05' },
      { created_at: '2026-01-02T03:04:05.000000Z' },
    ],
    [
      'in another zone',
      { created_at: '2026-01-02T03:04:05Z' },
      { created_at: '2026-01-02T05:04:05+02:00' },
    ],
    ['with another unknown field', { retries: 1 }, { retries: 2 }],
    ['with and without an unknown field', {}, { retries: 2 }],
  ])('%s', (_name, a, b) => {
    expect(sameData(final(a), final(b))).toBe(true);
  });

  it('if a field is null in one and missing in the other', () => {
    const { fees: _, ...without } = PENDING_DATA;
    expect(sameData(JSON.stringify(envelope()), JSON.stringify(envelope({ data: without })))).toBe(
      true,
    );
  });
});

describe('two envelopes differ', () => {
  it.each(Object.entries(FINAL_DATA))('if %s differs', (name, value) => {
    const other =
      typeof value === 'number'
        ? value + 1
        : name === 'created_at'
          ? '2026-01-02T03:04:06'
          : `${value}0`;
    expect(sameData(final(), final({ [name]: other }))).toBe(false);
    expect(sameData(final(), final({ [name]: null }))).toBe(false);
  });

  it('if the 39th digit differs, even of a bare number', () => {
    const bare = (fees: string) => final({ fees: 'F' }).replace('"F"', fees);
    expect(sameData(bare(`${'3'.repeat(38)}1`), bare(`${'3'.repeat(38)}2`))).toBe(false);
  });

  it('if only one of them has data', () => {
    expect(sameData(final(), null)).toBe(false);
    expect(sameData(final(), JSON.stringify(envelope({ state: 'Error', data: null })))).toBe(false);
    expect(sameData(final(), JSON.stringify(envelope()))).toBe(false);
  });
});

describe('the data of a stored envelope', () => {
  it('is null if there is none', () => {
    for (const response of [
      null,
      '',
      'no JSON',
      'null',
      '[]',
      '{}',
      '{"data":null}',
      '{"data":[1]}',
      '{"data":"x"}',
    ])
      expect(dataOf(response), String(response)).toBeNull();
  });
});

describe('an upstream time', () => {
  // On a machine in UTC, a time parsed as local time would go unnoticed.
  beforeAll(() => {
    vi.stubEnv('TZ', 'Asia/Kolkata');
    expect(new Date(0).getTimezoneOffset()).toBe(-330);
  });
  afterAll(() => {
    vi.unstubAllEnvs();
  });

  it.each([
    ['2026-01-02T03:04:05', 5_000],
    ['2026-01-02T03:04:05Z', 5_000],
    ['2026-01-02T03:04:05.250', 5_250],
    ['2026-01-02T03:04:05.250999Z', 5_250],
    ['2026-01-02T03:04:05.250999', 5_250],
    ['2026-01-02 03:04:05.250999', 5_250],
    ['2026-01-02T05:04:05+02:00', 5_000],
    ['2026-01-01T22:04:05-0500', 5_000],
  ])('%s is UTC, whatever the time zone of the machine', (text, expectedMs) => {
    expect(upstreamTime(text)).toBe(Date.UTC(2026, 0, 2, 3, 4) + expectedMs);
  });

  it.each([null, undefined, '', 'yesterday', '2026-13-45T99:00:00'])('%j is not a time', (text) => {
    expect(upstreamTime(text)).toBeNull();
  });
});
