import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { MATRIX } from '../../support/app/access-matrix.ts';
import { readEvents } from '../../support/app/event-reader.ts';
import { openTenants, type TenantClient } from '../../support/app/tenants.ts';

const ID = 'of-the-matrix';
const MARKERS = { none: 'secret-of-none', a: 'secret-of-a', b: 'secret-of-b' };
/** Routes about the whole process. */
const OF_PROCESS = [
  'GET /users/get_user',
  'GET /user/get_user',
  'GET /admin/get_all_users',
  'POST /v1/reload',
  'GET /v1/tenants',
];
const OPEN = Object.keys(MATRIX).filter((endpoint) => MATRIX[endpoint]?.access === 'open');

/** Gives one owner data of every kind, each with the marker, and with the same ids as everybody else's. */
async function fill(client: TenantClient, marker: string): Promise<void> {
  const metadata = { marker };
  const submissions = [ID, `${marker}-only`].map((submission_id) => ({ submission_id, metadata }));
  await client.json('/v1/submissions', { method: 'POST', body: { submissions } });
  const url = `https://${marker}.example.com/hook`;
  // It receives no event, so that no delivery changes it.
  const none = { url, description: marker, metadata: { marker: 'never' } };
  await client.json('/v1/webhooks', { method: 'POST', body: none });
  for (const id of [ID, `${marker}-only`]) await client.json(`/v1/submissions/${id}`, { method: 'DELETE' });
  const until = new Date(Date.now() + 3_600_000).toISOString();
  await client.json('/v1/mutes', { method: 'POST', body: { until, reason: marker } });
}

const TABLES = [
  'submissions',
  'history',
  'outbox',
  'submission_metadata',
  'webhooks',
  'webhook_secrets',
  'deliveries',
  'mutes',
  'alerts',
  'audit',
];
/** Refused requests and changes of credentials are in the audit of what belongs to no tenant. */
const CHANGES =
  "WHERE action NOT LIKE 'users.%' AND action NOT LIKE 'tokens.%' AND action NOT LIKE 'sessions.%' AND action <> 'auth.refused'";

/** Returns the content of each table. */
function dump(file: string): Map<string, string> {
  const db = new Database(file, { readonly: true });
  try {
    const rows = (table: string) =>
      db.prepare(`SELECT * FROM ${table} ${table === 'audit' ? CHANGES : ''} ORDER BY 1, 2`).all();
    return new Map(TABLES.map((table) => [table, JSON.stringify(rows(table))]));
  } finally {
    db.close();
  }
}

/** Returns the names of the tables with other contents. */
function changed(file: string, before: Map<string, string>): string[] {
  const after = dump(file);
  return TABLES.filter((table) => after.get(table) !== before.get(table));
}

const submit = { enabled: true, max_bytes: 1_000 };

describe('every route with a credential of a tenant', () => {
  let world: Awaited<ReturnType<typeof openTenants>>;
  const stop: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    const upstream = createServer((_request, response) => response.writeHead(404).end('{"error": "not found"}'));
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    stop.push(async () => void upstream.close());
    const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const setting = {
      upstreamUrl,
      upstream: { submit, bearer: 'a-bearer-of-the-upstream' },
      alerts: { check_s: 3_600 },
    };
    world = await openTenants(setting, (end) => stop.push(end));
    await fill(world.client(null), MARKERS.none);
    await fill(world.client('a'), MARKERS.a);
    await fill(world.client('b'), MARKERS.b);
    return async () => {
      for (const end of stop.toReversed()) await end();
    };
  });

  const requestOf = (endpoint: string, id: string) => {
    const [method = '', path = ''] = endpoint.split(' ');
    const { query = '', body } = MATRIX[endpoint] ?? {};
    return { path: `${path.replace(/\{\w+\}/, id)}${query}`, options: { method, ...(body !== undefined && { body }) } };
  };
  const webhookOf = async (client: TenantClient): Promise<string> => {
    const { webhooks } = (await client.json('/v1/webhooks')) as { webhooks: { id: string; url: string | null }[] };
    return webhooks.find(({ url }) => url !== null)?.id ?? '';
  };

  it.each(Object.keys(MATRIX).filter((endpoint) => !OPEN.includes(endpoint)))(
    '%s neither shows nor changes the data of others',
    async (endpoint) => {
      const files = [world.database, world.ledgerOf('b')];
      const before = new Map(files.map((file) => [file, dump(file)]));
      const foreign = [ID, `${MARKERS.b}-only`, `${MARKERS.none}-only`];
      if (endpoint.includes('webhooks'))
        foreign.push(await webhookOf(world.client('b')), await webhookOf(world.client(null)));
      for (const role of ['service', 'operator', 'admin', 'user'] as const)
        for (const id of foreign) {
          const { path, options } = requestOf(endpoint, id);
          const { status, text } = await world.client('a', role).send(path, options);
          expect(status).toBeLessThan(500);
          if (OF_PROCESS.includes(endpoint)) expect(status).toBe(403);
          for (const marker of [MARKERS.none, MARKERS.b]) expect(text.replaceAll(id, '')).not.toContain(marker);
        }
      for (const file of files) expect(changed(file, before.get(file) as Map<string, string>)).toEqual([]);
    },
  );

  it.each(['none', 'a', 'b'] as const)('the owner %s sees its own data', async (owner) => {
    const client = world.client(owner === 'none' ? null : owner);
    const { submissions } = (await client.json(`/v1/submissions?prefix=${MARKERS[owner]}`)) as {
      submissions: unknown[];
    };
    expect(submissions.length).toBe(1);
    const { entries } = (await client.json('/v1/audit?limit=1000')) as { entries: { subject: string | null }[] };
    expect(entries.map(({ subject }) => subject)).toContain(`${MARKERS[owner]}-only`);
    for (const other of Object.values(MARKERS).filter((marker) => marker !== MARKERS[owner])) {
      expect((await client.send(`/v1/submissions/${other}-only`)).status).toBe(404);
      expect(JSON.stringify(entries)).not.toContain(other);
    }
  });

  it('the secret of callbacks is one of the tenant', async () => {
    const secrets = new Set<string>();
    for (const owner of [null, 'a', 'b']) {
      const body = (await world.client(owner).json('/v1/webhooks/callbacks/rotate', { method: 'POST', body: {} })) as {
        secret: string;
      };
      secrets.add(body.secret);
    }
    expect(secrets.size).toBe(3);
  });

  it('the live feed of a tenant has its events only', async () => {
    const headers = { 'x-api-key': [], authorization: `Bearer ${world.client('a').token}` };
    const reader = await readEvents(world.url, '?after=0', headers);
    await reader.has(2);
    expect(reader.received.every(({ body }) => !JSON.stringify(body).includes(MARKERS.b))).toBe(true);
    expect(JSON.stringify(reader.received)).toContain(MARKERS.a);
  });

  it('the health check shows counts to operators without a tenant only', async () => {
    expect((await world.client('a').send('/readyz')).text).not.toContain('in_flight');
    expect((await world.client(null).send('/readyz')).text).toContain('in_flight');
  });
});
