import { describe, expect, it } from 'vitest';
import { context, historyOf, observation, VERDICTS } from '../support/ledger/domain.ts';
import {
  openLedger,
  outboxOf,
  rawConnection,
  trackRequests,
} from '../support/ledger/ledger-file.ts';

function tracked(count = 1) {
  const ledger = openLedger();
  ledger.track(trackRequests(count), 0);
  return ledger;
}

describe('recording', () => {
  it('a stale response and a repeated one only increase the number of polls', () => {
    const ledger = tracked();
    ledger.record([observation('pending', 50, 's0')], context());
    ledger.record([observation('error', 40, 's0')], context());
    ledger.record([observation('finalized', 49, 's0')], context());
    ledger.record([observation('pending', 60, 's0')], context());
    ledger.record([observation('pending', 60, 's0')], context());
    expect(historyOf(ledger, 's0')).toHaveLength(2);
    expect(ledger.submissions.get('s0')).toMatchObject({
      status: 'pending',
      version: 2,
      polls: 5,
      polledAt: 60,
    });
    expect(outboxOf(ledger.file)).toEqual([]);
  });

  it('a time of the last response in the future, from a wrong clock, does not block observations', () => {
    const ledger = tracked();
    ledger.record([observation('pending', 5_000, 's0')], context({ now: 5_000 }));
    ledger.record([observation('finalized', 50, 's0')], context({ now: 50 }));
    expect(ledger.submissions.get('s0')).toMatchObject({ status: 'finalized', polledAt: 50 });
  });

  it('an error in the middle of a batch rolls back the whole batch', () => {
    const ledger = tracked(20);
    ledger.record([observation('pending', 1, 's5')], context());
    const before = ledger.submissions.get('s5');
    const batch = trackRequests(20).map(({ submissionId }) =>
      observation('finalized', 10, submissionId),
    );
    batch.splice(10, 0, { ...observation('error', 10, 's5'), at: 10.5 });
    expect(() => ledger.record(batch, context())).toThrow();
    expect(ledger.submissions.get('s5')).toEqual(before);
    expect(ledger.submissions.get('s0')).toMatchObject({ status: 'tracking', polls: 0 });
    expect(outboxOf(ledger.file)).toEqual([]);
    expect(historyOf(ledger, 's0')).toHaveLength(1);
  });

  it('the raw response is returned byte for byte, with numbers that exceed JavaScript numbers', () => {
    const ledger = tracked(2);
    const fees = '340282366920938463463374607431768211455';
    const raw = `{ "state":"Finalized", "error":null,\n\t"data":{"block_hash":"0xb1","fees":"${fees}","block_number": 9007199254740993, "odd":"ü\\u0000 \u2028 💩"}, "id":"s0" }`;
    ledger.record([observation({ ...VERDICTS.finalized, envelope: raw }, 5, 's0')], context());
    ledger.close();
    const again = openLedger({ file: ledger.file });
    expect(again.submissions.get('s0')?.envelope).toBe(raw);
    expect(historyOf(again, 's0').at(-1)?.envelope).toBe(raw);
    expect(again.search.list({ limit: 2 }).submissions.map(({ envelope }) => envelope)).toEqual([
      null,
      raw,
    ]);
  });
});

describe('the constraints of the file', () => {
  it('a row of history cannot be altered', () => {
    const ledger = tracked();
    const raw = rawConnection(ledger.file);
    expect(() => raw.exec("UPDATE history SET status = 'finalized'")).toThrow(/append-only/);
    expect(() => raw.exec('UPDATE history SET at = at')).toThrow(/append-only/);
    expect(historyOf(ledger, 's0')).toMatchObject([{ status: 'tracking', at: 0 }]);
  });
});
