import { describe, expect, it } from 'vitest';
import { RefusedSignIns } from '../../src/access/refused-sign-ins.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';
import { createVirtualClock } from '../support/virtual-time/virtual-clock.ts';

const HOUR_MS = 3_600_000;

function open(maxPages?: number) {
  const ledger = openLedger(maxPages === undefined ? {} : { maxPages });
  const clock = createVirtualClock(0);
  const refused = new RefusedSignIns({ audit: ledger.audit, clock });
  const entries = () =>
    ledger.audit
      .list({ limit: 1_000 })
      .entries.toReversed()
      .map(({ address, detail }) => [address, detail?.replace(/, since .*/, '')]);
  return { ledger, clock, refused, entries };
}

describe('refused sign-ins', () => {
  it('have an entry of their address within a second, and one for all others of the hour', async () => {
    const { ledger, clock, refused, entries } = open();
    refused.add('unknown', '192.0.2.1');
    refused.add('malformed', '192.0.2.1');
    refused.add('unknown', '2001:db8:0:1::7');
    await clock.advance(1_000);
    expect(ledger.audit.list({ limit: 1 }).entries).toMatchObject([
      {
        at: 1_000,
        caller: 'unauthenticated',
        action: 'auth.refused',
        result: 'refused',
        detail: 'unknown 1, since 1970-01-01T00:00:00.000Z',
      },
    ]);
    for (let count = 0; count < 10_000; count += 1) refused.add('locked', '192.0.2.1');
    await clock.advance(HOUR_MS);
    refused.add('unknown', '192.0.2.1');
    await clock.advance(1_000);
    expect(entries()).toEqual([
      ['192.0.2.1', 'unknown 1, malformed 1'],
      ['2001:db8:0:1::/64', 'unknown 1'],
      ['192.0.2.1', 'locked 10000'],
      ['192.0.2.1', 'unknown 1'],
    ]);
  });

  it('of any number of addresses have a bounded number of entries', async () => {
    const { clock, refused, entries } = open();
    for (let index = 0; index < 5_000; index += 1) {
      refused.add('unknown', `10.0.${index >> 8}.${index & 255}`);
      refused.add('locked', `10.0.${index >> 8}.${index & 255}`);
      await clock.advance(100);
    }
    await clock.advance(HOUR_MS);
    expect(entries().length).toBeLessThanOrEqual(202);
    const others = entries().filter(([address]) => address === null);
    expect(others).toHaveLength(2);
    const total = entries()
      .flatMap(([, detail]) => [...(detail ?? '').matchAll(/(?:unknown|locked) (\d+)/g)])
      .reduce((sum, [, count]) => sum + Number(count), 0);
    expect(total).toBe(10_000);
  });

  it('are no requests without a credential', async () => {
    const { clock, refused, entries } = open();
    refused.add('absent', '192.0.2.1');
    await clock.advance(HOUR_MS);
    expect([entries(), clock.pending]).toEqual([[], 0]);
  });

  it('are written when the server stops, and leave no timer', async () => {
    const { clock, refused, entries } = open();
    refused.add('unknown', '192.0.2.1');
    refused.close();
    expect([entries(), clock.pending]).toEqual([[['192.0.2.1', 'unknown 1']], 0]);
  });
});
