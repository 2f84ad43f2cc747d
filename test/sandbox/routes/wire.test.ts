import { describe, expect, test } from 'vitest';
import { formatAmount, formatTimestamp } from '../../../src/sandbox/routes/wire.ts';
import { openSandbox } from '../open-sandbox.ts';

test.each([
  [0, '0.00 B'],
  [4, '4.00 B'],
  [1023, '1023.00 B'],
  [1024, '1.00 KB'],
  [1229, '1.20 KB'],
  [5 * 1024 ** 2, '5.00 MB'],
  [3 * 1024 ** 4, '3072.00 GB'],
])('%i bytes are formatted %s', (bytes, written) => {
  expect(formatAmount(bytes)).toBe(written);
});

describe('a timestamp', () => {
  const atMs = Date.UTC(2025, 0, 2, 3, 4, 5, 67) + 0.25;

  test.each([
    [true, 0, '2025-01-02T03:04:05Z'],
    [true, 3, '2025-01-02T03:04:05.067Z'],
    [true, 6, '2025-01-02T03:04:05.067250Z'],
    [false, 0, '2025-01-02T03:04:05'],
    [false, 3, '2025-01-02T03:04:05.067'],
    [false, 6, '2025-01-02T03:04:05.067250'],
  ] as const)('with zone %j and %i digits is %s', (zone, fractionDigits, written) => {
    expect(formatTimestamp(atMs, { zone, fractionDigits, extraFields: false })).toBe(written);
  });

  test('is returned in the format of the deployment', async () => {
    const sandbox = await openSandbox({ zone: false, fractionDigits: 6 });
    const response = await sandbox.lookUp(await sandbox.submit());
    expect(await response.json()).toMatchObject({
      data: { created_at: '2025-10-09T08:53:20.000000' },
    });
  });
});
