import { describe, expect, it } from 'vitest';
import { AuditTrail, checkAudit } from '../../src/access/audit-store.ts';
import { openBeside } from '../../src/ledger/open.ts';
import type { Actor } from '../../src/lib/actor.ts';
import { openLedger, rawConnection, trackRequests } from '../support/ledger/ledger-file.ts';

const ACTOR: Actor = { name: 'the admin', credentialId: null, address: '192.0.2.1' };
const REVOKE = { action: 'tokens.revoke', subject: '1' } as const;
const TOKEN = { hash: Buffer.alloc(32, 7), role: 'service', name: 'billing' };

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

  it('have no entry if nothing was changed', () => {
    const ledger = openLedger();
    const revoke = () => ledger.credentials.revoke(4711, 2);
    expect(ledger.audit.change(ACTOR, 2, revoke, (revoked) => (revoked ? REVOKE : undefined))).toBe(
      false,
    );
    expect(actionsOf(ledger)).toEqual([]);
  });

  it('a cancellation has one, a submission that is final already has none', () => {
    const ledger = openLedger();
    ledger.track(trackRequests(2), 1);
    ledger.cancel(['s0', 'never'], 2, ACTOR);
    ledger.cancel(['s0', 's1'], 3, ACTOR);
    expect(actionsOf(ledger)).toEqual(['submissions.cancel s1', 'submissions.cancel s0']);
  });
});

describe('a list', () => {
  it('examines a bounded number of entries', () => {
    const { audit, database } = openLedger();
    audit.append(ACTOR, 1, { action: 'webhooks.test' });
    database.transaction(() => {
      for (let count = 0; count < 4_001; count += 1) audit.append(ACTOR, 2, REVOKE);
    });
    const first = audit.list({ limit: 9, actions: ['webhooks.test'] });
    expect(first).toEqual({ entries: [], nextBefore: 3 });
    const second = audit.list({
      limit: 9,
      actions: ['webhooks.test'],
      before: first.nextBefore ?? 0,
    });
    expect(second).toMatchObject({ entries: [{ seq: 1 }], nextBefore: null });
  });
});

describe('the chain', () => {
  it('is one for a server and the commands beside it', async () => {
    const server = openLedger();
    const { database, close } = openBeside({ file: server.file, now: 0 });
    const command = new AuditTrail(database);
    for (let at = 0; at < 6; at += 1)
      (at % 2 === 0 ? server.audit : command).append(ACTOR, at, REVOKE);
    close();
    expect(await checkAudit(server.file, server.audit.head()?.hash)).toMatchObject({
      kind: 'intact',
      entries: 6,
    });
  });

  it('is broken by every statement that changes the file behind the back of dawatch', async () => {
    const ledger = openLedger();
    for (let at = 0; at < 4; at += 1)
      ledger.audit.append(ACTOR, at, { action: 'users.get', email: `user${at}@example.com` });
    const { hash } = ledger.audit.head() ?? {};
    const db = rawConnection(ledger.file);
    expect(() => db.exec("UPDATE audit SET caller = 'x'")).toThrow('append-only');
    expect(() => db.exec('DELETE FROM audit')).toThrow('append-only');
    db.exec('DROP TRIGGER audit_is_append_only; UPDATE audit SET at = 7 WHERE seq = 3');
    expect(await checkAudit(ledger.file)).toMatchObject({ kind: 'broken', seq: 3, entries: 2 });
    db.exec(
      'DROP TRIGGER audit_is_pruned_on_record; PRAGMA foreign_keys = OFF; DELETE FROM audit WHERE seq > 1',
    );
    expect(await checkAudit(ledger.file)).toMatchObject({ kind: 'intact', entries: 1 });
    expect(await checkAudit(ledger.file, hash)).toMatchObject({
      kind: 'broken',
      seq: null,
      entries: 1,
    });
  });

  it('stays verifiable after retention, which deletes old entries and records that', async () => {
    const ledger = openLedger();
    for (let at = 0; at < 1_200; at += 1) ledger.audit.append(ACTOR, at, REVOKE);
    const earlier = ledger.audit.head()?.hash;
    while (ledger.audit.prune(1_100, 5_000, 500) === 500);
    const { entries } = ledger.audit.list({ limit: 1 });
    expect(entries).toMatchObject([
      { seq: 1_203, action: 'audit.prune', caller: 'dawatch', subject: '1100' },
    ]);
    expect(await checkAudit(ledger.file, earlier)).toMatchObject({
      kind: 'intact',
      pruned: 1_100,
      entries: 103,
    });
    const db = rawConnection(ledger.file);
    db.pragma('foreign_keys = OFF');
    expect(() => db.exec('DELETE FROM audit WHERE seq = 1101')).toThrow('append-only');
    db.exec('DROP TRIGGER audit_is_pruned_on_record; DELETE FROM audit WHERE seq = 1101');
    expect(await checkAudit(ledger.file)).toMatchObject({ kind: 'broken', seq: null });
    db.close();
  });
});
