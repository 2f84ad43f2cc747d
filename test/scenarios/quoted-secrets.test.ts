import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { DawatchClient } from '../../src/client/index.ts';
import { EVENTS_QUEUE } from '../../src/redis/connections.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { escapedIn, reveals, secretText } from '../support/escapes.ts';
import { allRows } from '../support/ledger/ledger-file.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { seeded } from '../support/seed.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { until } from '../support/until.ts';

const ADMIN = 'an-admin-token-for-tests-0123456789';
const COUNT = 40;

/**
 * Responses of an upstream that quotes the secret wherever possible, each character escaped or not.
 */
function bodiesWith(secret: string, seed: number): { status: number; body: string }[] {
  const text = fc.string({ maxLength: 20 }).map((each) => JSON.stringify(each).slice(1, -1));
  const field = fc.constantFrom('state', 'error', 'extra');
  const response = fc.record({
    status: fc.constantFrom(200, 200, 200, 200, 404, 406, 400),
    body: fc.tuple(escapedIn(secret), text, text, field).map(([quoted, before, after, name]) => {
      const fields = {
        state: '"Error"',
        error: '"refused"',
        extra: '1',
        [name]: `"${before} ${quoted} ${after}"`,
      };
      const members = Object.entries(fields).map(([key, value]) => `"${key}":${value}`);
      return `{${members.join()},"data":{"user_id":"${quoted}","${quoted}":"${quoted}"}}`;
    }),
  });
  return fc.sample(response, { numRuns: COUNT, seed });
}

it.skipIf(isRedisMissing())(
  'a key that the upstream quotes in any escaping is in no log line, response, event, row or job',
  async () => {
    const { seed } = seeded('quoted secrets');
    const [secret = ''] = fc.sample(secretText, { numRuns: 1, seed });
    const bodies = bodiesWith(secret, seed);
    expect(bodies.every(({ body }) => reveals(body, secret))).toBe(true);
    const upstream = await serve((request, response) => {
      const id = Number(
        new URL(request.url ?? '', 'http://x').searchParams.get('submission_id')?.slice(1),
      );
      const { status = 500, body = '' } = bodies[id] ?? {};
      response.writeHead(status).end(body);
    });
    const folder = mkdtempSync(join(tmpdir(), 'dawatch-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const database = join(folder, 'ledger.db');
    const redis = await redisForTest({});
    const queue = new Queue(EVENTS_QUEUE, { connection: { url: redis.url } });
    onTestFinished(() => queue.close());
    const hooks = await openReceiver();
    const lines: string[] = [];
    const app = await openApp({
      database,
      adminToken: ADMIN,
      upstreamUrl: upstream.url,
      upstream: { api_key: secret },
      redisUrl: redis.url,
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
      logLevel: 'debug',
      onLog: (line) => lines.push(line),
    });
    onTestFinished(() => app.close());
    const client = new DawatchClient({ url: app.url, apiKey: API_KEY, token: ADMIN });
    await client.webhooks.create({ url: hooks.url, types: ['*'] });
    const ids = bodies.map((_, index) => `s${index}`);
    await client.track(ids);
    await until(() => upstream.requests.length > 3 * COUNT);
    await Promise.all(ids.map((id) => client.cancel(id)));
    await until(async () => (await queue.getWaitingCount()) >= COUNT);
    await until(() => hooks.requests.length >= COUNT);

    const headers = { 'x-api-key': API_KEY };
    const pages = ids.flatMap((id) => [
      `/v1/submissions/${id}`,
      `/v1/get_submission_info?submission_id=${id}`,
    ]);
    const shown = await Promise.all(
      [
        ...pages,
        '/v1/submissions?limit=1000',
        '/v1/pacing',
        '/v1/overview',
        '/readyz',
        '/metrics',
      ].map(async (path) => (await fetch(`${app.url}${path}`, { headers })).text()),
    );
    const jobs = (await queue.getJobs()).map((job) => JSON.stringify(job.data));
    const rows = Object.values(allRows(database))
      .flat()
      .map((row) => Object.values(row as object).join('\n'));
    const delivered = hooks.requests.map(({ body }) => body);
    for (const [place, texts] of Object.entries({ lines, shown, jobs, rows, bodies: delivered })) {
      expect(texts.length, place).toBeGreaterThan(0);
      for (const text of texts) expect(reveals(text, secret), `${place}: ${text}`).toBe(false);
    }
    expect(rows.join('')).toContain('[redacted]');
  },
);
