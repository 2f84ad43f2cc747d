import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { call } from '../support/app/http-calls.ts';
import { appForTest } from '../support/app/running-app.ts';
import { cli } from '../support/processes/cli.ts';
import { createAuthority } from '../support/redis/certificates.ts';
import { deadAddress, KEY, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const ADMIN_TOKEN = 'an-admin-token-for-tests-0123456789';
const ID = 'late';
const TIMEOUT_MS = 10_000;

const httpFault = (respond: RequestListener) => async () => (await serve(respond)).url;

/** An upstream whose certificate no authority has signed that dawatch trusts. */
async function untrusted(): Promise<string> {
  const { cert, key } = createAuthority().issue('upstream');
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const UNREADABLE = Buffer.from('fd377a585a000004e6d6b446', 'hex');

type Fault = [what: string, url: () => Promise<string>, reason: RegExp];
const SILENT = 'no response';
const FAULTS: Fault[] = [
  ['a closed port', deadAddress, /^the connection was refused \(127\.0\.0\.1:\d+\)$/],
  [SILENT, httpFault(() => undefined), /^no complete response within 10 s$/],
  [
    'bytes that are no text',
    httpFault((_, response) => response.end(UNREADABLE)),
    /^HTTP 200, binary data$/,
  ],
  [
    'a refused key in an encoding that is not supported',
    httpFault((_, response) =>
      response.writeHead(401, { 'content-encoding': 'xz' }).end(UNREADABLE),
    ),
    /refused the request: HTTP 401 xz, not decoded$/,
  ],
  [
    'bytes in another encoding than stated',
    httpFault((_, response) =>
      response.writeHead(200, { 'content-encoding': 'deflate' }).end(UNREADABLE),
    ),
    /^HTTP 200, deflate, not decoded$/,
  ],
  ['a certificate that is not trusted', untrusted, /^TLS failed \([A-Z_]+\)/],
];

async function open(
  database: string,
  upstreamUrl: string,
  { clock, api_key = KEY }: { clock?: HeldClock; api_key?: string } = {},
) {
  const log: string[] = [];
  const app = await appForTest({
    database,
    upstreamUrl,
    adminToken: ADMIN_TOKEN,
    upstream: { api_key },
    ...(clock && { clock }),
    tuning: { pausedMs: 0, testsKeys: true },
    onLog: (line) => log.push(line),
  });
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const get = async (path: string) => JSON.parse((await call(app.url, path, { headers })).text);
  const upstreamOf = async (path: string) => {
    const { upstreams } = await get(path);
    return Array.isArray(upstreams) ? upstreams[0] : upstreams.default;
  };
  return { app, log, get, upstreamOf };
}

it.each(FAULTS)('an outage names its reason: %s', async (what, startUpstream, reason) => {
  const database = join(tempFolder(), 'ledger.db');
  const clock = new HeldClock(TIMEOUT_MS);
  const { app, upstreamOf } = await open(database, await startUpstream(), { clock });
  await call(app.url, '/v1/submissions', { method: 'POST', body: { submission_id: ID } });
  await eventually(async () => {
    if (what === SILENT) clock.fire(TIMEOUT_MS);
    expect((await upstreamOf('/readyz')).reason).toMatch(reason);
  });
});

it.each([
  ['down', 502, '<title>502 Bad Gateway</title>', /^HTTP 502 .*502 Bad Gateway/],
  ['unauthorized', 401, 'Invalid API key', /^HTTP 401 Invalid API key$/],
  ['paused', 429, 'Slow down', /^HTTP 429 Slow down$/],
] as const)(
  'each place that shows an outage or a pause names its reason, also after a restart: %s',
  async (state, status, text, reason) => {
    const database = join(tempFolder(), 'ledger.db');
    // Several gateways send a Unix time.
    const pausedUntil = Math.floor(Date.now() / 1_000) + 120;
    const head = status === 429 ? { 'retry-after': String(pausedUntil) } : {};
    const upstream = await serve((_, response) => response.writeHead(status, head).end(text));
    const { app, log, get, upstreamOf } = await open(database, upstream.url);
    await call(app.url, '/v1/submissions', { method: 'POST', body: { submission_id: ID } });
    const event = `upstream.${state}`;
    const alerts = async () => (await get('/v1/alerts')).alerts;
    await eventually(async () => {
      expect(
        log.some((line) => line.includes(event)),
        event,
      ).toBe(true);
      expect(await alerts()).toHaveLength(1);
    });

    const line = JSON.parse(log.find((one) => one.includes(event)) ?? '{}');
    expect(line.reason, 'the log').toMatch(reason);
    const [{ summary }] = await alerts();
    expect(/\(([^)]+)\)/.exec(summary)?.[1], 'the alert').toMatch(reason);
    const until = state === 'paused' ? pausedUntil * 1_000 : Number.NaN;
    for (const path of ['/readyz', '/v1/pacing']) {
      const shown = await upstreamOf(path);
      expect(shown, path).toMatchObject({ state });
      expect(shown.reason, path).toMatch(reason);
      // The Date header is in whole seconds.
      if (state === 'paused')
        expect(Math.abs(Date.parse(shown.paused_until) - until)).toBeLessThan(15_000);
      else expect(shown.paused_until).toBeNull();
    }

    await app.close();
    // Nothing responds any more, and the timeout does not pass.
    const clock = new HeldClock(TIMEOUT_MS);
    const restarted = await open(database, (await serve(() => undefined)).url, { clock });
    expect((await restarted.upstreamOf('/readyz')).reason, 'after a restart').toMatch(reason);
    if (state === 'paused') expect(restarted.log.join()).toContain('upstream.paused');
  },
);

it('a refused key is reported at the start, before any submission, and a valid one ends it at the next', async () => {
  const database = join(tempFolder(), 'ledger.db');
  const upstream = await serve((request, response) =>
    request.headers['x-api-key'] === KEY
      ? response.writeHead(500).end('{"error":"Record not found"}')
      : response.writeHead(401).end('Invalid API key'),
  );
  const { app, log, upstreamOf } = await open(database, upstream.url, { api_key: 'another-key' });
  const isUnauthorized = (line: string) => line.includes('upstream.unauthorized');
  await eventually(() => expect(log.some(isUnauthorized)).toBe(true));
  expect(await upstreamOf('/readyz')).toMatchObject({
    state: 'unauthorized',
    reason: 'HTTP 401 Invalid API key',
  });
  await app.close();
  const restarted = await open(database, upstream.url);
  await eventually(async () =>
    expect(await restarted.upstreamOf('/readyz')).toMatchObject({ state: 'up' }),
  );
});

it('a state in capitals is final, and an unknown one is named by the log, the alert about late submissions and doctor', async () => {
  const database = join(tempFolder(), 'ledger.db');
  const data = { block_hash: `0x${'ab'.repeat(32)}`, block_number: '500027' };
  const upstream = await serve((request, response) => {
    const id = new URL(request.url ?? '', 'http://x').searchParams.get('submission_id') ?? '';
    const state = id.startsWith('sealed') ? 'SEALED' : 'FINALIZED';
    response.end(JSON.stringify({ id, state, error: null, data }));
  });
  const { app, log, get } = await open(database, upstream.url);
  for (const id of ['sealed-1', 'sealed-2', 'final'])
    await call(app.url, '/v1/submissions', {
      method: 'POST',
      body: { submission_id: id, stuck_after_s: 0 },
    });
  await eventually(async () => {
    expect(await get('/v1/submissions/final')).toMatchObject({
      status: 'finalized',
      upstream_state: 'FINALIZED',
      data,
    });
    expect((await get('/v1/alerts')).alerts[0]?.summary).toMatch(
      /^2 submissions .* too long; it reports the state SEALED, 2 ids have a block$/,
    );
  });
  const lines = log.map((line) => JSON.parse(line));
  expect(lines.find(({ event }) => event === 'submission.finalized').block_number).toBe(500_027);
  for (const event of ['submission.stuck', 'alert.raised'])
    expect(JSON.stringify(lines.find((line) => line.event === event))).toContain('SEALED');
  const env = {
    DAWATCH_DATABASE: database,
    DAWATCH_UPSTREAM_URL: upstream.url,
    DAWATCH_UPSTREAM_API_KEY: KEY,
  };
  const { stdout } = await cli(['doctor'], { env });
  expect(stdout).toMatch(/^warning +upstream\.default +it reports the state SEALED, 2 ids have/m);
});
