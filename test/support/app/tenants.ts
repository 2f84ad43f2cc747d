import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { App } from '../../../src/app.ts';
import type { Role } from '../../../src/domain/access/scopes.ts';
import { sha256 } from '../../../src/http/access/access.ts';
import { makeToken } from '../../../src/http/access/credentials.ts';
import { tenantLedger } from '../../../src/ledger/file/files.ts';
import { Ledger } from '../../../src/ledger/ledger.ts';
import { createLedger } from '../ledger/new-ledger.ts';
import { call, type HttpResponse } from './http-calls.ts';
import { configOf, openApp } from './running-app.ts';

type Setting = Omit<Parameters<typeof openApp>[0], 'database'>;
type Call = { method?: string; body?: unknown; headers?: Record<string, string> };

/** A token and its requests. */
export type TenantClient = {
  token: string;
  send(path: string, options?: Call): Promise<HttpResponse>;
  /** Returns the parsed body of a response with a status below 300; throws for others. */
  json(path: string, options?: Call): Promise<never>;
};

/** Stores a token in a ledger that no server has open, or beside one. */
export function addToken(database: string, tenant: string | null, role: Role): string {
  const token = makeToken(role);
  createLedger(database);
  const ledger = new Ledger({ file: database, now: 0 });
  ledger.credentials.add({ hash: sha256(token), role, tenant, name: `the ${role} of ${tenant}` }, 0);
  ledger.close();
  return token;
}

/** The real app with these tenants, and a client for each role of each tenant and of none. `atEnd` gets what closes it. */
export async function openTenants(
  { tenants = { a: {}, b: {} }, ...setting }: Setting = {},
  atEnd: (end: () => Promise<void>) => void = onTestFinished,
) {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-test-'));
  const database = join(folder, 'ledger.db');
  const names = [null, ...Object.keys(tenants)];
  const roles = ['service', 'operator', 'admin', 'user'] as const;
  const tokens = new Map(
    names.map((name) => [name, new Map(roles.map((role) => [role as Role, addToken(database, name, role)]))]),
  );
  const lines: string[] = [];
  const open = (next: Setting = {}) =>
    openApp({ database, apiKey: null, onLog: (line) => lines.push(line), ...setting, tenants, ...next });
  let reloaded: Setting = {};
  const settings = {
    load: () => {
      const next = { database, apiKey: null, ...setting, tenants, ...reloaded };
      return { config: configOf(next), settings: [], file: undefined };
    },
    onApplied: () => undefined,
  };
  let app: App = await open({ settings });
  atEnd(async () => {
    await app.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const client = (tenant: string | null, role: Role = 'admin'): TenantClient => {
    const token = tokens.get(tenant)?.get(role) ?? '';
    const send = (path: string, { method = 'GET', body, headers }: Call = {}) =>
      call(app.url, path, {
        method,
        headers: { 'x-api-key': [], authorization: `Bearer ${token}`, ...headers },
        ...(body !== undefined && { body }),
      });
    return {
      token,
      send,
      async json(path, options) {
        const { status, text } = await send(path, options);
        if (status >= 300) throw new Error(`${path} responded ${status}: ${text}`);
        return JSON.parse(text) as never;
      },
    };
  };
  return {
    database,
    ledgerOf: (tenant: string) => tenantLedger(database, tenant),
    client,
    get url() {
      return app.url;
    },
    logs: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    close: () => app.close(),
    /** Replaces these settings and reloads them. */
    reload(next: Setting) {
      reloaded = next;
      return app.reload({ name: 'SIGHUP', credentialId: null, address: null });
    },
    async restart(next: Setting = {}) {
      await app.close();
      app = await open({ settings, ...next });
    },
  };
}

/** Returns a function that tracks submissions. */
export function track({ send }: TenantClient, ...ids: string[]): Promise<HttpResponse> {
  return send('/v1/submissions', { method: 'POST', body: { submission_ids: ids } });
}
