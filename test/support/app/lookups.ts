import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { ROLES, type Role, sha256 } from '../../../src/access/access.ts';
import { makeToken } from '../../../src/access/credentials-store.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import type { UpstreamConfig } from '../../../src/polling/settings.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import type { Config } from '../../../src/wiring/settings.ts';
import { createLedger, Ledger } from '../ledger/ledger-file.ts';
import { call, type HttpResponse } from './http-calls.ts';
import { openApp, useOpened } from './running-app.ts';

export const ADMIN_TOKEN = 'an-admin-token-for-tests-0123456789';
/** Headers of a request of the administrator, without the service key. */
export const AS_ADMIN = { 'x-api-key': [], authorization: `Bearer ${ADMIN_TOKEN}` };
/** The bearer that the sandbox accepts as an administrator's. */
export const UPSTREAM_BEARER = 'sandbox-admin-token';
export const SECOND = { name: 'User 2', email: 'user2@example.com' };

type Setting = {
  /** An upstream other than the sandbox. */
  upstreamUrl?: string;
  clock?: Clock;
  /** null: callers send the upstream's own token. */
  bearer?: string | null;
  upstream?: Partial<UpstreamConfig>;
  limits?: Partial<Config['limits']>;
  trustedProxies?: string[];
  channels?: Config['channels'];
};

type AuditRow = {
  caller: string;
  action: string;
  result: string;
  detail: string | null;
  email_hash: string | null;
  email_masked: string | null;
};

export type Lookups = Awaited<ReturnType<typeof startLookups>>;

/** The real app over a sandbox, with a token of each role; closed when the test ends. */
export async function openLookups(setting: Setting = {}): Promise<Lookups> {
  const lookups = await startLookups(setting);
  onTestFinished(() => lookups.close());
  return lookups;
}

/** The same for all tests of a file. */
export function useLookups(setting: Setting = {}): () => Lookups {
  return useOpened(() => startLookups(setting));
}

async function startLookups({ bearer = UPSTREAM_BEARER, ...setting }: Setting) {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-test-'));
  const database = join(folder, 'ledger.db');
  const [tokens, revoked] = [tokensOfRoles(), tokensOfRoles()];
  createLedger(database);
  const ledger = new Ledger({ file: database, now: 0 });
  for (const role of ROLES)
    ledger.credentials.add({ hash: sha256(tokens[role]), role, name: `the ${role}` }, 0);
  for (const role of ROLES)
    ledger.credentials.revoke(
      ledger.credentials.add({ hash: sha256(revoked[role]), role, name: `once the ${role}` }, 0).id,
      1,
    );
  ledger.close();

  const sandbox = await startSandbox({ options: { rowDelayMs: 0 } });
  let logs = '';
  const app = await openApp({
    database,
    upstreamUrl: setting.upstreamUrl ?? sandbox.url,
    upstream: { ...setting.upstream, bearer: bearer ?? undefined },
    adminToken: ADMIN_TOKEN,
    ...(setting.clock && { clock: setting.clock }),
    ...(setting.channels && { channels: setting.channels }),
    ...(setting.limits && { limits: setting.limits }),
    ...(setting.trustedProxies && { trustedProxies: setting.trustedProxies }),
    logLevel: 'trace',
    onLog: (line) => {
      logs += line;
    },
  });
  const query = <T>(work: (db: Database.Database) => T): T => {
    const db = new Database(database);
    try {
      return work(db);
    } finally {
      db.close();
    }
  };

  return {
    url: app.url,
    folder,
    sandbox,
    tokens,
    revoked,
    logs: () => logs,
    /** Sends a request with this bearer, or without any. */
    get: (path: string, token?: string): Promise<HttpResponse> =>
      call(app.url, path, {
        headers: { 'x-api-key': [], ...(token && { authorization: `Bearer ${token}` }) },
      }),
    revoke: (role: Role) =>
      query((db) => db.prepare('UPDATE credentials SET revoked_at = 1 WHERE role = ?').run(role)),
    /** The lookups in the audit, oldest first. */
    audit: () =>
      query((db) =>
        db
          .prepare(
            `SELECT caller, action, result, detail, email_hash, email_masked
             FROM audit WHERE action LIKE 'users.%' ORDER BY seq`,
          )
          .all(),
      ) as AuditRow[],
    async close() {
      await app.close();
      await sandbox.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function tokensOfRoles(): Record<Role, string> {
  return Object.fromEntries(ROLES.map((role) => [role, makeToken(role)])) as Record<Role, string>;
}

export function userPath({ name, email } = SECOND, spelling = '/users/get_user'): string {
  return `${spelling}?name=${encodeURIComponent(name)}&email=${encodeURIComponent(email)}`;
}
