import { describe, expect, it } from 'vitest';
import { DawatchClient } from '../../../src/client/index.ts';
import { checkAudit } from '../../../src/ledger/access/audit-check.ts';
import { checkErased, isErased } from '../../../src/ledger/maintenance/erasure-check.ts';
import { call, problemOf } from '../../support/app/http-calls.ts';
import { type Lookups, openLookups, SECOND, userPath } from '../../support/app/lookups.ts';

const erase = (lookups: Lookups, body: unknown) =>
  call(lookups.url, '/v1/erasures', {
    method: 'POST',
    headers: { 'x-api-key': [], authorization: `Bearer ${lookups.tokens.admin}` },
    body,
  });

describe('POST /v1/erasures', () => {
  it('erases an address from submissions and the audit, and returns what it changed', async () => {
    const lookups = await openLookups();
    const client = new DawatchClient({ url: lookups.url, apiKey: lookups.tokens.admin });
    await client.track(['a', 'b'], { metadata: { user: SECOND.email } });
    await client.track(['c'], { metadata: { user: 'another@example.com' } });
    await lookups.get(userPath(), lookups.tokens.user);
    expect(await client.erase({ email: SECOND.email })).toEqual({
      erased: {
        submissions: 2,
        history: 0,
        events: 0,
        alerts: 0,
        attempts: 0,
        report_rows: 0,
        audit_persons: 1,
        people: 0,
      },
      log_truncated: true,
      not_covered: expect.arrayContaining([expect.stringContaining('backups')]),
    });
    expect((await client.get('a')).metadata).toBeNull();
    expect((await client.get('c')).metadata).toEqual({ user: 'another@example.com' });
    const { entries, head } = await client.audit();
    expect(entries).toMatchObject([
      { action: 'data.erase', result: 'done', caller: 'the admin', subject: 'email', address: '127.0.0.1' },
      { action: 'data.erase', result: 'started' },
      { action: 'users.get', email_masked: null, email_hash: null, email_salt: null },
    ]);
    const file = `${lookups.folder}/ledger.db`;
    expect(isErased(await checkErased(file, { kind: 'email', email: SECOND.email }))).toBe(true);
    expect(await checkAudit(file, head?.hash)).toMatchObject({ kind: 'intact', erasedPersons: 1 });
    const exported = [];
    for await (const entry of client.exportAudit()) exported.push(entry.action);
    expect(exported).toEqual(['users.get', 'data.erase', 'data.erase', 'audit.export']);
  });

  it('runs one after the other', async () => {
    const lookups = await openLookups();
    const body = { metadata: { customer: 8831 } };
    const results = await Promise.all([erase(lookups, body), erase(lookups, body)]);
    expect(results.map(({ status }) => status)).toEqual([200, 200]);
    const { entries } = JSON.parse((await lookups.get('/v1/audit', lookups.tokens.admin)).text);
    expect(entries.map(({ result }: { result: string }) => result)).toEqual(['done', 'started', 'done', 'started']);
  });

  it.each([
    {},
    { email: 'ada' },
    { email: 'ada@example.com', metadata: { a: 'b' } },
    { metadata: {} },
    { metadata: { a: 'b', c: 'd' } },
    { metadata: { a: '' } },
    { metadata: { '': 'a' } },
    { metadata: { a: { b: 1 } } },
    { metadata: 'a=b' },
    { mail: 'ada@example.com' },
  ])('refuses %j and erases nothing', async (body) => {
    const lookups = await openLookups();
    const response = await erase(lookups, body);
    expect(response.status).toBe(400);
    problemOf(response);
    const { entries } = JSON.parse((await lookups.get('/v1/audit', lookups.tokens.admin)).text);
    expect(entries).toEqual([]);
  });
});
