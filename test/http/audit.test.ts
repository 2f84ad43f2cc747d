import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fastify } from 'fastify';
import { validatorCompiler } from 'fastify-type-provider-zod';
import { describe, expect, it, onTestFinished } from 'vitest';
import { authorize } from '../../src/access/access.ts';
import { registerAudit } from '../../src/access/audit-routes.ts';
import { registerUsers } from '../../src/access/users-routes.ts';
import { registerProblems } from '../../src/http/problems.ts';
import { LedgerError } from '../../src/ledger/errors.ts';
import { call, problemOf } from '../support/app/http-calls.ts';
import {
  ADMIN_TOKEN,
  openLookups,
  SECOND,
  UPSTREAM_BEARER,
  userPath,
} from '../support/app/lookups.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';

const LISTING = '/admin/get_all_users?limit=2';
const HASH = expect.stringMatching(/^[0-9a-f]{64}$/);

const ADMIN = { role: 'admin', id: null, name: 'an admin' } as const;

/** The routes of the audit, for an admin whose credential ends when `currentCaller` says so. */
function openAudit(
  currentCaller: () => typeof ADMIN | undefined = () => ADMIN,
  clock = { now: () => 1 },
) {
  const ledger = openLedger();
  const app = fastify();
  onTestFinished(() => app.close());
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  app.decorateRequest('clientAddress', '');
  const identity = { kind: 'known', hash: Buffer.alloc(32), caller: ADMIN } as const;
  app.addHook('onRequest', async (request) => {
    Object.assign(request, { caller: ADMIN, identity });
  });
  const authenticator = { identify: () => identity, currentCaller };
  const actor = { name: 'another admin', credentialId: null, address: null };
  const append = () => ledger.audit.append(actor, 1, { action: 'webhooks.test' });
  return {
    app,
    append,
    register: () => registerAudit(app, { ledger, clock, authenticator }),
  };
}

it('an export ends with its own entry, because later ones may not be on the disk', async () => {
  const { app, append, register } = openAudit();
  app.addHook('onSend', async () => append());
  register();
  const { body } = await app.inject({ url: '/v1/audit?format=ndjson' });
  const actions = body
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).action);
  expect(actions).toEqual(['audit.export']);
});

it('an export ends when the credential does', async () => {
  let pages = 1;
  const { app, append, register } = openAudit(() => (pages-- > 0 ? ADMIN : undefined));
  for (let times = 0; times < 600; times += 1) append();
  register();
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const cut = fetch(`${url}/v1/audit?format=ndjson`).then((response) => response.text());
  await expect(cut).rejects.toThrow('terminated');
});

describe('every lookup leaves a row', () => {
  it('with caller, action and result', async () => {
    const lookups = await openLookups();
    const { tokens } = lookups;
    await lookups.get(userPath(), tokens.user);
    await lookups.get(
      userPath({ name: 'Nobody', email: 'nobody@else.example' }, '/user/get_user'),
      tokens.admin,
    );
    await lookups.get(userPath(), tokens.service);
    await lookups.get(LISTING, tokens.user);
    await lookups.get(LISTING, tokens.admin);
    lookups.sandbox.injectFault({ kind: 'database', count: 1, target: 'users' });
    await lookups.get(LISTING, tokens.admin);
    const second = { email_hash: HASH, email_masked: 'u…@example.com' };
    const noEmail = { email_hash: null, email_masked: null };
    const get = { action: 'users.get', detail: null };
    const list = { action: 'users.list', ...noEmail };
    expect(lookups.audit()).toEqual([
      { ...get, ...second, caller: 'the user', result: 'found' },
      {
        ...get,
        caller: 'the admin',
        result: 'not_found',
        email_hash: HASH,
        email_masked: 'n…@else.example',
      },
      { ...get, ...second, caller: 'the service', result: 'refused', detail: 'the role service' },
      { ...list, caller: 'the user', result: 'refused', detail: 'the role user' },
      { ...list, caller: 'the admin', result: 'found', detail: 'limit 2, 2 users' },
      { ...list, caller: 'the admin', result: 'failed', detail: 'limit 2, http_status' },
    ]);
  });

  it('with the id of the credential, unless it is configured, and at most a letter of the local part', async () => {
    const lookups = await openLookups();
    await lookups.get(userPath({ name: 'A', email: 'a@b.co' }), lookups.tokens.user);
    await lookups.get(userPath({ name: 'A', email: 'ab@b.co' }), ADMIN_TOKEN);
    const { text } = await lookups.get('/v1/audit', ADMIN_TOKEN);
    expect(JSON.parse(text).entries).toMatchObject([
      { caller: 'DAWATCH_ADMIN_TOKEN', credential_id: null, email_masked: 'a…@b.co' },
      { caller: 'the user', credential_id: 2, email_masked: '…@b.co' },
    ]);
  });

  it('with the same hash for all spellings of an address, in this ledger only', async () => {
    const hashes = async () => {
      const lookups = await openLookups();
      for (const email of [SECOND.email, SECOND.email.toUpperCase(), 'user3@example.com'])
        await lookups.get(userPath({ name: 'User 2', email }), lookups.tokens.user);
      return lookups.audit().map((row) => row.email_hash);
    };
    const [one, other] = [await hashes(), await hashes()];
    expect(one[0]).toBe(one[1]);
    expect(one[0]).not.toBe(one[2]);
    expect(one[0]).not.toBe(other[0]);
  });

  it('with a short hash of a forwarded token, the same for the same one', async () => {
    const lookups = await openLookups({ bearer: null });
    for (const token of [UPSTREAM_BEARER, 'another', UPSTREAM_BEARER])
      await lookups.get(LISTING, token);
    const { text } = await lookups.get('/v1/audit?action=users.list', ADMIN_TOKEN);
    const callers = JSON.parse(text).entries.map((entry: { caller: string }) => entry.caller);
    for (const caller of callers) expect(caller).toMatch(/^forwarded:[0-9a-f]{8}$/);
    expect(callers[0]).toBe(callers[2]);
    expect(callers[0]).not.toBe(callers[1]);
    expect(JSON.parse(text).entries[0].credential_id).toBeNull();
  });

  it('and no byte of the ledger holds a name or an address', async () => {
    const lookups = await openLookups();
    const requested = { name: 'Secretive Person', email: 'secretive.person@example.com' };
    for (const token of Object.values(lookups.tokens))
      await lookups.get(userPath(requested), token);
    await lookups.get(LISTING, lookups.tokens.admin);
    expect(lookups.audit()).toHaveLength(5);
    const files = readdirSync(lookups.folder).map((name) =>
      readFileSync(join(lookups.folder, name), 'latin1'),
    );
    const bytes = files.join('');
    expect(bytes).toContain('s…@example.com'.replace('…', Buffer.from('…').toString('latin1')));
    expect(bytes).not.toMatch(/secretive/i);
    expect(bytes).not.toContain('user1@example.com');
  });
});

describe('a lookup that cannot be audited has no result:', () => {
  /** Opens lookups over a ledger without space for another row. */
  async function fullAudit(role: 'user' | 'service') {
    const ledger = openLedger({ maxPages: 60 });
    const actor = { name: 'x'.repeat(500), credentialId: null, address: null };
    expect(() => {
      for (;;) ledger.audit.append(actor, 1, { action: 'users.get' });
    }).toThrow(LedgerError);
    const server = fastify();
    onTestFinished(() => server.close());
    server.setValidatorCompiler(validatorCompiler);
    server.setSerializerCompiler(() => JSON.stringify);
    registerProblems(server);
    const caller = { id: null, role, name: 'x'.repeat(500) };
    const authenticator = {
      identify: () => ({ kind: 'known' as const, hash: Buffer.alloc(32), caller }),
      currentCaller: () => caller,
    };
    server.addHook('onRequest', authorize(authenticator));
    const found = { kind: 'found' as const, value: { id: 'the-secret-record' } };
    registerUsers(server, {
      users: {
        forwards: false,
        getUser: async () => found,
        listUsers: async () => ({ kind: 'found', value: [found.value] }),
      },
      ledger,
      clock: Date,
      authenticator,
      credentials: () => undefined,
    });
    return server.listen({ port: 0, host: '127.0.0.1' });
  }

  it.each(['user', 'service'] as const)(
    'neither with the record nor with a refusal, for the role %s',
    async (role) => {
      const response = await call(await fullAudit(role), userPath());
      expect(response).toMatchObject({ status: 507, headers: { 'retry-after': '30' } });
      problemOf(response);
      expect(response.text).not.toContain('the-secret-record');
    },
  );
});

describe('GET /v1/audit', () => {
  it('shows the rows page by page, newest first', async () => {
    const lookups = await openLookups({ upstreamUrl: await deadAddress() });
    const { tokens } = lookups;
    for (let limit = 1; limit <= 5; limit++)
      await lookups.get(`/admin/get_all_users?limit=${limit}`, tokens.admin);
    await lookups.get(userPath(), tokens.user);
    const pages = [];
    for (let cursor = ''; pages.length < 5; ) {
      const response = await lookups.get(
        `/v1/audit?limit=4${cursor && `&cursor=${cursor}`}`,
        tokens.admin,
      );
      expect(response).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
      const page = JSON.parse(response.text);
      pages.push(page.entries);
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
    expect(pages.map((entries) => entries.map(({ seq }: { seq: number }) => seq))).toEqual([
      [6, 5, 4, 3],
      [2, 1],
    ]);
    expect(pages[0][0]).toEqual({
      seq: 6,
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      caller: 'the user',
      caller_person: null,
      credential_id: 2,
      address: '127.0.0.1',
      action: 'users.get',
      result: 'failed',
      subject: null,
      detail: 'network',
      email_hash: HASH,
      email_masked: 'u…@example.com',
    });
  });

  it('shows only the rows that match every condition', async () => {
    const lookups = await openLookups();
    const { tokens } = lookups;
    await lookups.get(userPath(), tokens.user);
    await lookups.get(LISTING, tokens.admin);
    await lookups.get(LISTING, tokens.user);
    const seqs = async (query: string) => {
      const { entries } = JSON.parse((await lookups.get(`/v1/audit?${query}`, tokens.admin)).text);
      return entries.map(({ seq }: { seq: number }) => seq);
    };
    expect(await seqs('caller=the%20user')).toEqual([3, 1]);
    expect(await seqs('action=users.list,users.get&caller=the%20admin')).toEqual([2]);
    expect(await seqs('action=users.get&action=tokens.create')).toEqual([1]);
    expect(await seqs('subject=none')).toEqual([]);
    expect(await seqs(`email=${SECOND.email}`)).toEqual([1]);
    expect(await seqs(`email=+${SECOND.email.toUpperCase()}&caller=the%20user`)).toEqual([1]);
    expect(await seqs(`email=${lookups.audit()[0]?.email_hash}`)).toEqual([1]);
    expect(await seqs('email=nobody@example.com')).toEqual([]);
    expect(await seqs(`email=${SECOND.email}&action=users.list`)).toEqual([]);
    expect(await seqs('since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00%2B02:00')).toEqual([
      4, 3, 2, 1,
    ]);
    expect(await seqs('action=audit.read')).toEqual([4]);
    expect(await seqs('until=2020-01-01T00:00:00Z')).toEqual([]);
  });

  it('pages through the entries about a person, however many others there are', () => {
    const { audit, database } = openLedger();
    const actor = { name: 'a', credentialId: null, address: null };
    database.transaction(() => {
      for (let at = 0; at < 12_000; at += 1) {
        const email = at % 4_000 === 0 ? 'ada@example.com' : 'other@example.com';
        audit.append(actor, at, { action: 'users.get', email });
      }
    });
    const first = audit.list({ email: 'ada@example.com', limit: 2 });
    expect(first.entries.map(({ seq }) => seq)).toEqual([8_001, 4_001]);
    const before = first.nextBefore ?? undefined;
    const second = audit.list({ email: 'ada@example.com', limit: 2, before });
    expect([second.entries.map(({ seq }) => seq), second.nextBefore]).toEqual([[1], null]);
  });

  it('leaves an entry for the first page of each caller in an hour, which pages after it show', async () => {
    let now = 0;
    const { app, register } = openAudit(() => ADMIN, { now: () => now });
    register();
    const actions = async (method: 'GET' | 'HEAD' = 'GET') => {
      const { body } = await app.inject({ method, url: '/v1/audit' });
      return (
        method === 'GET' && JSON.parse(body).entries.map((one: { action: string }) => one.action)
      );
    };
    await actions('HEAD');
    expect(await actions()).toEqual([]);
    expect(await actions()).toEqual(['audit.read']);
    expect(await actions()).toEqual(['audit.read']);
    now = 3_600_000;
    await actions();
    expect(await actions()).toEqual(['audit.read', 'audit.read']);
  });

  it('refuses invalid parameters, and exports with others than the times, without an entry', async () => {
    const { get, tokens } = await openLookups();
    for (const query of [
      ...['limit=1001', 'cursor=x', 'e-mail=a@b.c', 'email=', 'action=users.gone'],
      ...['caller=a&caller=b', 'since=2026-01-02T00:00:00Z&until=2026-01-02T00:00:00Z'],
      ...['format=csv', 'format=ndjson&limit=5', 'format=ndjson&cursor=czEuNDcxMQ'],
      'format=ndjson&caller=a',
    ])
      expect(problemOf(await get(`/v1/audit?${query}`, tokens.admin)).errors, query).toBeDefined();
    const { text } = await get('/v1/audit', tokens.admin);
    expect(JSON.parse(text).entries).toEqual([]);
  });
});
