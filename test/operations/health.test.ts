import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fastify } from 'fastify';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { SUBMISSIONS_QUEUE } from '../../src/redis/connections.ts';
import { registerHealth } from '../../src/wiring/health-routes.ts';
import { call, post } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../support/app/lookups.ts';
import { API_KEY, appForTest, useAppWithSandbox } from '../support/app/running-app.ts';
import { cliProcess } from '../support/processes/cli.ts';
import { openQueue } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { freePort } from '../support/servers/free-port.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';

const app = useAppWithSandbox({ adminToken: ADMIN_TOKEN });

type Readiness = {
  status: string;
  ledger: string;
  upstreams: Record<string, { state: string; tracked: number }>;
};

async function readiness(
  headers: Record<string, string | string[]> = AS_ADMIN,
): Promise<Readiness> {
  const response = await call(app.url, '/readyz', { headers });
  expect(response.status).toBe(200);
  return JSON.parse(response.text) as Readiness;
}

const untilState = (state: string) =>
  eventually(async () => expect((await readiness()).upstreams.default?.state).toBe(state));

// A submission that is always polled, so that the app detects the state of the upstream.
app.prepare(async () => {
  await post(app.url, { submission_id: '00000000-0000-4000-8000-000000000000' });
});

afterEach(async () => {
  app.sandbox.injectFault({ kind: 'none' });
  await untilState('up');
});

it('is alive', async () => {
  const response = await call(app.url, '/livez');
  expect(response).toMatchObject({ status: 200, text: '{"status":"ok"}' });
});

it.skipIf(isRedisMissing())(
  'names the paused queues of Redis, and is degraded until they are resumed',
  async () => {
    const redis = await redisForTest();
    const withRedis = await appForTest({
      redisUrl: redis.url,
    });
    const until = (status: string, paused: string[]) =>
      eventually(async () => {
        const body = JSON.parse((await call(withRedis.url, '/readyz')).text);
        expect(body).toMatchObject({ status, redis: { state: 'up', paused } });
      });
    const queue = openQueue(redis, SUBMISSIONS_QUEUE);
    await until('ok', []);
    await queue.pause();
    await until('degraded', [SUBMISSIONS_QUEUE]);
    await queue.resume();
    await until('ok', []);
  },
);

it('is ready while its upstreams respond', async () => {
  expect(await readiness()).toMatchObject({
    status: 'ok',
    ledger: 'ok',
    upstreams: { default: { state: 'up', tracked: 1, in_flight: expect.any(Number) } },
  });
});

it.each<[string, Record<string, string | string[]>]>([
  ['nobody', { 'x-api-key': [] }],
  ['a service', { 'x-api-key': API_KEY }],
  ['somebody unknown', { 'x-api-key': [], authorization: 'Bearer never-known' }],
  ['two admin headers', { 'x-api-key': [], authorization: Array(2).fill(`Bearer ${ADMIN_TOKEN}`) }],
])('shows %s only the states of components', async (_, headers) => {
  expect(await readiness(headers)).toEqual({
    status: 'ok',
    ledger: 'ok',
    upstreams: { default: { state: 'up' }, other: { state: 'up' } },
  });
});

it.each([
  ['is out', 'reset', 'down'],
  ['sends pages of a proxy', 'html_503', 'down'],
  ['refuses the key', 'unauthorized', 'unauthorized'],
] as const)(
  'accepts submissions but is degraded while the upstream %s, and recovers',
  async (_, kind, state) => {
    app.sandbox.injectFault({ kind });
    await untilState(state);
    expect((await readiness()).status).toBe('degraded');
    expect((await post(app.url, { submission_id: `taken-while-${state}-${kind}` })).status).toBe(
      202,
    );
    app.sandbox.injectFault({ kind: 'none' });
    await untilState('up');
    expect((await readiness()).status).toBe('ok');
  },
);

it('shows the states even if the ledger cannot be read for credentials', async () => {
  const server = fastify();
  onTestFinished(() => server.close());
  server.setValidatorCompiler(() => () => true);
  server.setSerializerCompiler(() => JSON.stringify);
  registerHealth(server, {
    authenticator: {
      identify() {
        throw new LedgerError('io', 'it cannot be read');
      },
      currentCaller: () => undefined,
    },
    health: () => ({ ledgerWritable: false, upstreams: [], logLinesDropped: 0 }),
  });
  const response = await call(await server.listen({ port: 0, host: '127.0.0.1' }), '/readyz', {
    headers: AS_ADMIN,
  });
  expect(response.status).toBe(503);
  expect(JSON.parse(response.text)).toEqual({
    status: 'unavailable',
    ledger: 'not_writable',
    upstreams: {},
  });
});

it('`doctor --ready` finds it by the settings, without a proxy, and fails if it is not ready', async () => {
  const check = (settings: object) => {
    const file = join(tempFolder(), 'dawatch.yaml');
    writeFileSync(file, JSON.stringify(settings));
    const env = {
      DAWATCH_CONFIG: file,
      HTTP_PROXY: 'http://127.0.0.1:1',
      DAWATCH_URL: 'http://127.0.0.1:1',
    };
    // In its own process, because the proxy would remain that of this one.
    return cliProcess(['doctor', '--ready'], { env });
  };
  const { port } = new URL(app.url);
  const unready = await serve((_, response) => response.writeHead(503).end());
  const [ready, refused, absent] = await Promise.all([
    check({ server: { host: '0.0.0.0', port: Number(port) } }),
    check({ server: { port: Number(new URL(unready.url).port) } }),
    check({ server: { port: await freePort() } }),
  ]);
  expect(ready).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(refused).toMatchObject({
    code: 5,
    stderr: expect.stringContaining(`status 503 from ${unready.url}/readyz`),
  });
  expect(absent).toMatchObject({ code: 5, stderr: expect.stringContaining('no response') });
});
