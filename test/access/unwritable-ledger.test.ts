import Database from 'better-sqlite3';
import { fastify } from 'fastify';
import { validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sha256 } from '../../src/access/access.ts';
import { AuditTrail } from '../../src/access/audit-store.ts';
import { registerCredentials } from '../../src/access/credentials-routes.ts';
import { CredentialStore, credentialsOf, makeToken } from '../../src/access/credentials-store.ts';
import { registerSession } from '../../src/access/session-route.ts';
import { SessionStore } from '../../src/access/sessions.ts';
import { registerProblems } from '../../src/http/problems.ts';
import { LedgerError } from '../../src/ledger/errors.ts';
import { LedgerDatabase } from '../../src/ledger/ledger-database.ts';
import { call, problemOf } from '../support/app/http-calls.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';

const ACTOR = { name: 'x'.repeat(500), credentialId: null, address: null };
const SESSION = sha256('the cookie');

/**
 * Ways in which a ledger cannot be written, as SQLite reports them, with the status of a change.
 */
const WAYS: [string, number, (db: Database.Database, audit: AuditTrail) => void][] = [
  [
    'a full disk',
    507,
    (db, audit) => {
      db.pragma(`max_page_count = ${db.pragma('page_count', { simple: true })}`);
      expect(() => {
        for (;;) audit.append(ACTOR, 1, { action: 'users.get' });
      }).toThrow(LedgerError);
    },
  ],
  ['a read-only disk', 503, (db) => void db.pragma('query_only = ON')],
];

/** The routes over a real ledger with an admin, a service and a session. */
async function open(limit: (db: Database.Database, audit: AuditTrail) => void) {
  const opened = openLedger();
  opened.close();
  const { file } = opened;
  const db = new Database(file);
  onTestFinished(() => void db.close());
  const database = new LedgerDatabase(db, file);
  const [audit, credentials] = [new AuditTrail(database), new CredentialStore(database)];
  const sessions = new SessionStore(database, audit);
  const token = makeToken('admin');
  const added = { hash: sha256(token), role: 'admin', name: 'ops' } as const;
  credentials.add(added, 0);
  const { id } = credentials.add({ hash: sha256('other'), role: 'service', name: 'billing' }, 0);
  const session = { hash: SESSION, credentialHash: added.hash, replaces: undefined };
  sessions.begin(session, { actor: ACTOR, detail: 'token', now: 0 });
  limit(db, audit);

  const clock = { now: () => 1_000_000, elapsed: () => 0, after: () => () => undefined };
  const caller = { id: 1, role: 'admin', name: ACTOR.name } as const;
  const server = fastify().withTypeProvider<ZodTypeProvider>();
  onTestFinished(() => server.close());
  server.setValidatorCompiler(validatorCompiler);
  server.setSerializerCompiler(() => JSON.stringify);
  registerProblems(server);
  server.addHook('onRequest', async (request) => {
    request.caller = caller;
    request.clientAddress = '127.0.0.1';
  });
  registerCredentials(server, {
    ledger: { credentials, audit },
    clock,
    hasConfiguredAdmin: true,
  });
  registerSession(server, {
    authenticator: {
      identify: ({ method }) => ({
        kind: 'known',
        hash: added.hash,
        caller,
        ...(method === 'DELETE' && { session: SESSION }),
      }),
      currentCaller: () => caller,
    },
    sessions: { endOf: () => 1 } as never,
    ledger: { sessions },
    clock,
    config: { oidc: {}, server: {} } as never,
  });
  const url = await server.listen({ port: 0, host: '127.0.0.1' });
  const stored = () =>
    ['credentials', 'sessions', 'audit'].map((table) => db.prepare(`SELECT * FROM ${table}`).all());
  const { find } = credentialsOf(
    { service_key: undefined, admin_token: undefined },
    credentials,
    clock,
  );
  return { url, id, token, stored, find };
}

describe.each(WAYS)('on %s', (_, status, limit) => {
  it.each<[string, (id: number) => [string, string, unknown?]]>([
    ['creating a credential', () => ['POST', '/v1/credentials', { name: 'x', role: 'service' }]],
    ['revoking one', (id) => ['DELETE', `/v1/credentials/${id}`]],
    ['signing in', () => ['POST', '/v1/session']],
    ['signing out', () => ['DELETE', '/v1/session']],
  ])('%s fails with a reason, changes nothing, and returns no secret', async (_what, requestOf) => {
    const { url, id, stored } = await open(limit);
    const before = stored();
    const [method, path, body] = requestOf(id);
    const response = await call(url, path, { method, ...(body !== undefined && { body }) });
    expect(problemOf(response).status).toBe(status);
    expect(response.text).not.toMatch(/dawatch_|\.db/);
    expect(response.headers['set-cookie']).toBeUndefined();
    expect(stored()).toEqual(before);
  });

  it('credentials are accepted, and listed', async () => {
    const { url, token, find } = await open(limit);
    expect(find(sha256(token))).toMatchObject({ name: 'ops', role: 'admin' });
    const { text } = await call(url, '/v1/credentials');
    expect(JSON.parse(text).credentials).toHaveLength(2);
  });
});
