import { describe, expect, it } from 'vitest';
import type { Actor } from '../../src/lib/actor.ts';
import { openLedger, rawConnection } from '../support/ledger/ledger-file.ts';

const ACTOR: Actor = { name: 'the admin', credentialId: null, address: '192.0.2.1' };
const REVOKE = { action: 'tokens.revoke', subject: '1' } as const;
const TOKEN = { hash: Buffer.alloc(32, 7), role: 'service', name: 'billing' } as const;

const actionsOf = (ledger: ReturnType<typeof openLedger>) =>
  ledger.audit.list({ limit: 100 }).entries.map(({ action, subject }) => `${action} ${subject}`);

describe('a change and its entry', () => {
  it('are committed together, or neither is', () => {
    const ledger = openLedger();
    const { id } = ledger.credentials.add(TOKEN, 1);
    const revoke = () => ledger.credentials.revoke(id, 2);
    const fail = () => {
      throw new Error('the entry cannot be made');
    };
    expect(() => ledger.audit.change(ACTOR, 2, revoke, fail)).toThrow('the entry');
    expect(ledger.credentials.find(TOKEN.hash, 3)).toBeDefined();
    expect(actionsOf(ledger)).toEqual([]);
    expect(ledger.audit.change(ACTOR, 2, revoke, (revoked) => (revoked ? REVOKE : undefined))).toBe(
      true,
    );
    expect(ledger.credentials.find(TOKEN.hash, 3)).toBeUndefined();
    expect(ledger.audit.list({ limit: 1 }).entries).toMatchObject([
      {
        seq: 1,
        at: 2,
        caller: 'the admin',
        address: '192.0.2.1',
        ...REVOKE,
        result: 'done',
        detail: null,
      },
    ]);
  });
});

it('refuses every statement that changes an entry, and one that deletes more than retention recorded', () => {
  const ledger = openLedger();
  for (let at = 0; at < 1_200; at += 1) ledger.audit.append(ACTOR, at, REVOKE);
  while (ledger.audit.prune(1_100, 5_000, 500) === 500);
  const { entries } = ledger.audit.list({ limit: 1_000 });
  expect(entries[0]).toMatchObject({ action: 'audit.prune', caller: 'dawatch', subject: '1100' });
  expect(entries.map(({ seq }) => seq)).toEqual(
    Array.from({ length: 103 }, (_, index) => 1_203 - index),
  );
  const db = rawConnection(ledger.file);
  db.pragma('foreign_keys = OFF');
  expect(() => db.exec("UPDATE audit SET caller = 'x'")).toThrow('append-only');
  expect(() => db.exec('DELETE FROM audit WHERE seq = 1101')).toThrow('append-only');
  db.close();
});
