import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { readEvents } from '../support/app/event-reader.ts';
import { call, post, problemOf } from '../support/app/http-calls.ts';
import { openApp } from '../support/app/running-app.ts';
import { finalEnvelope } from '../support/ledger/domain.ts';
import { startCli } from '../support/processes/cli.ts';
import {
  CRASH_ADMIN_TOKEN,
  CRASH_API_KEY,
  prepareServer,
  prepareWorker,
} from '../support/processes/killable-server.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const KEYS = ['the-first-upstream-key', 'the-second-upstream-key'];
const ADMIN = { authorization: `Bearer ${CRASH_ADMIN_TOKEN}` };
const SERVICE = { 'x-api-key': CRASH_API_KEY };
const UNTIL = { timeout: 15_000, interval: 10 };

/**
 * An upstream that finalizes every submission at its first poll, and holds its responses between
 * `hold` and `release`.
 */
async function openUpstream() {
  const polls: { id: string; key: string; at: number }[] = [];
  const held: (() => void)[] = [];
  const refused = new Set<string>();
  let isHolding = false;
  const { url } = await serve((request, response: ServerResponse) => {
    const id =
      new URL(request.url ?? '', 'http://upstream').searchParams.get('submission_id') ?? '';
    const key = String(request.headers['x-api-key']);
    polls.push({ id, key, at: performance.now() });
    if (refused.has(key)) {
      response.writeHead(401).end();
      return;
    }
    const respond = () => response.end(JSON.stringify(finalEnvelope({}, { id })));
    if (isHolding) held.push(respond);
    else respond();
  });
  return {
    url,
    polls,
    /** Keys that get 401. */
    refused,
    hold: () => {
      isHolding = true;
    },
    release: () => {
      isHolding = false;
      for (const respond of held.splice(0)) respond();
    },
  };
}

/** Polls often. */
const lag_price = 1_000;

type Settings = Record<string, unknown>;

/** A server in its own process whose settings file can be changed. */
async function openWorld(settings: Settings = {}) {
  const upstream = await openUpstream();
  const folder = tempFolder();
  const server = await prepareServer(folder, {
    upstreams: { default: { lag_price, url: upstream.url, api_key: KEYS[0] } },
    log: { level: 'info' },
    ...settings,
  });
  const file = join(folder, 'dawatch.yaml');
  const original = JSON.parse(readFileSync(file, 'utf8')) as Settings;
  server.start();
  await server.listening();
  const reloaded = () => server.logged('settings.reloaded');
  return {
    upstream,
    folder,
    server,
    file,
    original,
    /** Replaces these sections of the settings file, which is renamed into its place. */
    change(sections: Settings) {
      writeFileSync(`${file}.new`, JSON.stringify({ ...original, ...sections }));
      renameSync(`${file}.new`, file);
    },
    /** Sends SIGHUP; returns the log line of the reload. */
    async hangUp() {
      const before = reloaded().length;
      server.hangUp();
      await vi.waitUntil(() => reloaded().length > before, UNTIL);
      return reloaded().at(-1);
    },
    reload: (headers: Record<string, string> = ADMIN) =>
      call(server.url, '/v1/reload', { method: 'POST', headers }),
    track: (...ids: string[]) => post(server.url, { submission_ids: ids }, SERVICE),
    async finalized(id: string) {
      await vi.waitUntil(async () => (await server.client.get(id)).status === 'finalized', UNTIL);
    },
  };
}

/**
 * Mounts a secret as Kubernetes does: the file is a link through a folder that is a link, and a
 * change replaces that link.
 */
function mountSecret(folder: string, name: string, secret: string) {
  let version = 0;
  const data = join(folder, '..data');
  const write = (text: string) => {
    version += 1;
    mkdirSync(join(folder, `..v${version}`), { recursive: true });
    writeFileSync(join(folder, `..v${version}`, name), text);
    symlinkSync(`..v${version}`, `${data}.new`);
    renameSync(`${data}.new`, data);
    rmSync(join(folder, `..v${version - 1}`), { recursive: true, force: true });
  };
  write(secret);
  symlinkSync(`..data/${name}`, join(folder, name));
  return { path: join(folder, name), write };
}

describe('SIGHUP', () => {
  it('applies keys, budgets, channels, routes and the log level; polls, deliveries and readers in flight continue', async () => {
    const secret = mountSecret(tempFolder(), 'upstream-key', KEYS[0] ?? '');
    const held: ServerResponse[] = [];
    const first = await openReceiver(({ response }) => held.push(response));
    const second = await openReceiver();
    const third = await openReceiver();
    const fourth = await openReceiver();
    const channel = (url: string) => ({
      type: 'slack',
      url: `${url}/hooks/the-path-is-secret`,
    });
    const route = (...channels: string[]) => [{ types: ['submission.finalized'], channels }];
    const world = await openWorld({ channels: { ops: channel(first.url) }, routes: route('ops') });
    const { upstream, server } = world;
    const withKey = (budget: object) => ({
      default: { lag_price, url: upstream.url, api_key_file: secret.path, budget },
    });
    world.change({
      upstreams: withKey({}),
      channels: { ops: channel(first.url) },
      routes: route('ops'),
    });
    // The same key, now in a file.
    expect(await world.hangUp()).toMatchObject({ changes: 'none' });
    const reader = await readEvents(server.url, '', SERVICE);
    await world.track('a');
    await vi.waitUntil(() => held.length === 1, UNTIL);
    upstream.hold();
    await world.track('b');
    await vi.waitUntil(() => upstream.polls.length === 2, UNTIL);

    secret.write(`${KEYS[1]}\n`);
    world.change({
      upstreams: withKey({ requests: 40, concurrency: 16 }),
      channels: { ops: channel(second.url), more: channel(third.url) },
      routes: route('ops', 'more'),
      log: { level: 'debug' },
      heartbeat: { url: `${fourth.url}/the-path-is-secret` },
    });
    expect(await world.hangUp()).toMatchObject({
      caller: 'SIGHUP',
      changes: [
        ...[
          'channels.more.type',
          'channels.more.url',
          'channels.ops.url',
          'heartbeat.url',
          'log.level',
        ],
        ...['routes', 'upstreams.default.api_key'],
        ...['upstreams.default.budget.concurrency', 'upstreams.default.budget.requests'],
      ].join(', '),
    });

    upstream.release();
    for (const response of held) response.end();
    await world.track('c');
    for (const id of ['a', 'b', 'c']) await world.finalized(id);
    const eventsTo = (name: string) =>
      server
        .logged('delivery.delivered')
        .filter(({ destination }) => destination === `channel:${name}`)
        .reduce((sum, { events }) => sum + Number(events), 0);
    await vi.waitUntil(() => eventsTo('ops') === 3 && eventsTo('more') === 2, UNTIL);
    await vi.waitUntil(() => fourth.requests.length === 1, UNTIL);
    expect(upstream.polls).toMatchObject([
      { id: 'a', key: KEYS[0] },
      { id: 'b', key: KEYS[0] },
      { id: 'c', key: KEYS[1] },
    ]);
    expect(first.requests).toHaveLength(1);
    expect(server.logged('delivery.failed')).toEqual([]);
    await reader.has(3);
    expect(reader.received.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(server.logged('http.responded').length).toBeGreaterThan(0);
    const pacing = await server.client.pacing();
    expect(pacing.upstreams[0]).toMatchObject({ budget: { requests: 40 } });
    for (const text of [...KEYS, 'the-path-is-secret'])
      expect(server.lines.join('\n')).not.toContain(text);
  });

  it('with a valid key resumes polling at once, although the next probe is half a minute away', async () => {
    const { upstream, server, track, change, hangUp, finalized } = await openWorld();
    upstream.refused.add(KEYS[0] ?? '');
    for (const id of ['a', 'b', 'c', 'd', 'e']) await track(id);
    await vi.waitUntil(() => server.logged('upstream.unauthorized').length > 0, UNTIL);
    change({ upstreams: { default: { lag_price, url: upstream.url, api_key: KEYS[1] } } });
    await hangUp();
    await finalized('a');
    expect(upstream.polls.at(-1)?.key).toBe(KEYS[1]);
  });

  it('reads secret files again on a server without a settings file', async () => {
    const upstream = await openUpstream();
    const cwd = tempFolder();
    const key = mountSecret(join(cwd), 'service-key', 'the-first-service-key');
    const { child } = startCli(['serve'], {
      cwd,
      env: {
        DAWATCH_UPSTREAM_URL: upstream.url,
        DAWATCH_PORT: '0',
        DAWATCH_API_KEY: null,
        DAWATCH_API_KEY_FILE: key.path,
      },
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
    const url = await vi.waitUntil(() => /"url":"([^"]+)"/.exec(output)?.[1], UNTIL);
    const statusWith = async (secret: string) =>
      (await call(url, '/v1/overview', { headers: { 'x-api-key': secret } })).status;
    expect(await statusWith('the-first-service-key')).toBe(200);
    key.write('the-second-service-key');
    child.kill('SIGHUP');
    await vi.waitUntil(() => output.includes('"changes":"auth.api_key"'), UNTIL);
    expect([
      await statusWith('the-first-service-key'),
      await statusWith('the-second-service-key'),
    ]).toEqual([401, 200]);
  });

  it.skipIf(isRedisMissing())(
    'gives a worker the new key; it never reads the secret files of the server',
    async () => {
      const upstream = await openUpstream();
      const redis = await redisForTest();
      const folder = tempFolder();
      const app = await openApp({
        database: join(folder, 'l.db'),
        upstreamUrl: upstream.url,
        redisUrl: redis.url,
      });
      const settingsWith = (key: string) => ({
        log: { level: 'info' },
        auth: { api_key_file: '/not/mounted', admin_token_file: '/not/mounted' },
        channels: { ops: { type: 'slack', url_file: '/not/mounted' } },
        routes: [{ types: ['*'], channels: ['ops'] }],
        upstreams: { default: { url: upstream.url, api_key: key, bearer_file: '/not/mounted' } },
        redis: { url: redis.url },
      });
      const worker = prepareWorker(folder, 'one', settingsWith(KEYS[0] ?? ''));
      worker.start();
      const pollWith = async (id: string, key: string | undefined) => {
        await post(app.url, { submission_ids: [id] });
        await vi.waitUntil(() => upstream.polls.some((poll) => poll.id === id), UNTIL);
        expect(upstream.polls.find((poll) => poll.id === id)?.key).toBe(key);
      };
      try {
        await vi.waitUntil(() => worker.logged('redis.connected').length > 0, UNTIL);
        await vi.waitUntil(async () => (await overviewOf(app.url)).workers === 1, UNTIL);
        await pollWith('a', KEYS[0]);
        // A setting of the server that needs a restart does not concern a worker.
        const changed = { ...settingsWith(KEYS[1] ?? ''), server: { port: 1 } };
        writeFileSync(join(folder, 'one.yaml'), JSON.stringify(changed));
        worker.hangUp();
        await vi.waitUntil(() => worker.logged('settings.reloaded').length > 0, UNTIL);
        expect(worker.logged('settings.reloaded')).toMatchObject([
          { changes: 'upstreams.default.api_key' },
        ]);
        await pollWith('b', KEYS[1]);

        writeFileSync(
          join(folder, 'one.yaml'),
          JSON.stringify({ ...changed, worker: { concurrency: 5 } }),
        );
        worker.hangUp();
        await vi.waitUntil(() => worker.logged('settings.reload_refused').length > 0, UNTIL);
        expect(worker.logged('settings.reload_refused')).toMatchObject([
          { reason: 'a restart is needed to change worker.concurrency' },
        ]);
        expect(worker.isGone()).toBe(false);
      } finally {
        await app.close();
      }
    },
  );
});

const overviewOf = async (url: string) =>
  JSON.parse((await call(url, '/v1/overview')).text) as { workers: number };

describe('POST /v1/reload', () => {
  it('needs the role admin, returns the names of the changes, and is audited', async () => {
    const { server, reload, change } = await openWorld();
    expect(problemOf(await reload(SERVICE))).toMatchObject({ status: 403 });
    expect(problemOf(await reload({}))).toMatchObject({ status: 401 });
    expect(await reload()).toMatchObject({ status: 200, text: '{"changes":[]}' });
    change({ log: { level: 'warn' } });
    expect(await reload()).toMatchObject({ status: 200, text: '{"changes":["log.level"]}' });
    const audit = JSON.parse((await call(server.url, '/v1/audit', { headers: ADMIN })).text);
    expect(audit.entries).toMatchObject([
      {
        action: 'settings.reload',
        result: 'reloaded',
        caller: 'DAWATCH_ADMIN_TOKEN',
        credential_id: null,
        address: '127.0.0.1',
        detail: 'log.level',
      },
    ]);
  });

  it('with anything invalid applies nothing, names the reason without secrets, and the server continues', async () => {
    const secret = join(tempFolder(), 'key');
    writeFileSync(secret, KEYS[0] ?? '');
    const { server, folder, file, original, reload, change, track, finalized, upstream } =
      await openWorld();
    const pipe = join(folder, 'pipe');
    const asFile = (path: string) => ({
      default: { lag_price, url: upstream.url, api_key_file: path },
    });
    change({ upstreams: asFile(secret) });
    expect(await reload()).toMatchObject({ status: 200 });
    const other = { api_key: 'another-service-key', admin_token: CRASH_ADMIN_TOKEN };
    const changed = { auth: other, upstreams: asFile(secret) };
    const complete = JSON.stringify({ ...original, ...changed }, null, 1);
    const cases: [name: string, write: () => void, reason: string][] = [
      ['an unknown setting', () => change({ ...changed, chanels: {} }), 'chanels is not a setting'],
      [
        'a value out of bounds',
        () => change({ ...changed, log: { level: 'loud' } }),
        'log.level must be',
      ],
      [
        'a file cut in the middle',
        () => writeFileSync(file, complete.slice(0, complete.length / 2)),
        file,
      ],
      ['an empty file', () => writeFileSync(file, ''), 'the file is empty'],
      ['no file', () => undefined, 'the file does not exist'],
      ['a folder instead of the file', () => mkdirSync(file), 'is a directory'],
      [
        'a missing secret file',
        () => change({ ...changed, upstreams: asFile(join(folder, 'none')) }),
        'does not exist',
      ],
      [
        'an empty secret file',
        () => change({ ...changed, upstreams: asFile('/dev/null') }),
        'names an empty file',
      ],
      [
        'a pipe, which would block',
        () => change({ ...changed, upstreams: asFile(pipe) }),
        'names a pipe',
      ],
      [
        'a changed port',
        () => change({ ...changed, server: { port: 1 } }),
        'a restart is needed to change server.port',
      ],
      [
        'a bearer for the first time',
        () =>
          change({
            ...changed,
            upstreams: { default: { ...asFile(secret).default, bearer: 'a-bearer' } },
          }),
        'a restart is needed to change upstreams.default.bearer',
      ],
      [
        'another upstream',
        () =>
          change({
            ...changed,
            upstreams: { ...asFile(secret), more: { lag_price, url: upstream.url } },
          }),
        'upstreams.more.url',
      ],
      ['no credential', () => change({ ...changed, auth: {} }), 'no credential would be left'],
      [
        'an unknown channel',
        () => change({ ...changed, routes: [{ types: ['*'], channels: ['x'] }] }),
        'no channel "x"',
      ],
    ];
    execFileSync('mkfifo', [pipe]);
    for (const [name, write, reason] of cases) {
      rmSync(file, { recursive: true, force: true });
      write();
      const problem = problemOf(await reload());
      expect(problem, name).toMatchObject({ status: 409, detail: expect.stringContaining(reason) });
      expect(problem.detail).toMatch(/^nothing was applied: /);
      expect((await call(server.url, '/v1/overview', { headers: SERVICE })).status, name).toBe(200);
    }
    expect(server.logged('settings.reload_refused')[0]).toMatchObject({
      level: 'error',
      caller: 'DAWATCH_ADMIN_TOKEN',
      address: '127.0.0.1',
    });
    await track('a');
    await finalized('a');

    rmSync(file, { recursive: true, force: true });
    change(changed);
    expect(await reload()).toMatchObject({ status: 200, text: '{"changes":["auth.api_key"]}' });
    expect((await call(server.url, '/v1/overview', { headers: SERVICE })).status).toBe(401);
    for (const text of ['another-service-key', KEYS[0]])
      expect(server.lines.join('\n')).not.toContain(text);
  });

  it('serves concurrent requests one after the other: each change is applied and reported once', async () => {
    const { server, reload, change, original } = await openWorld();
    const reports: string[][] = [];
    const levels = ['warn', 'error', 'info', 'debug'];
    for (const level of levels) {
      change({ ...original, log: { level } });
      const responses = await Promise.all([reload(), reload(), reload()]);
      reports.push(...responses.map(({ text }) => JSON.parse(text).changes as string[]));
    }
    expect(reports.filter((changes) => changes.length > 0)).toEqual(
      levels.map(() => ['log.level']),
    );
    expect((await call(server.url, '/livez')).status).toBe(200);
  });

  it('keeps the request budget in every window across changes of it', async () => {
    const { upstream, reload, change, track, original } = await openWorld();
    const { default: first } = original.upstreams as { default: object };
    const budgets = [20, 5, 30].map((requests) => ({ requests, per_s: 1 }));
    const changedAt: number[] = [];
    await track(...Array.from({ length: 200 }, (_, index) => `submission-${index}`));
    for (const budget of budgets) {
      change({ upstreams: { default: { ...first, budget } } });
      expect((await reload()).status).toBe(200);
      changedAt.push(performance.now());
      const before = upstream.polls.length;
      await vi.waitUntil(() => upstream.polls.length >= before + 2 * budget.requests, UNTIL);
    }
    const times = upstream.polls.map(({ at }) => at);
    const mostAfter = (from: number, to: number) =>
      Math.max(
        ...times.map(
          (at) => times.filter((t) => t >= from && t < to && t >= at && t < at + 1_000).length,
        ),
      );
    const [low = 0, high = 0] = changedAt.slice(1);
    expect(mostAfter(changedAt[0] ?? 0, low)).toBeLessThanOrEqual(50);
    // Requests before the change count, so even its first window holds the new limit.
    expect(mostAfter(low, high - 1_000)).toBeLessThanOrEqual(5);
    expect(mostAfter(high, Number.POSITIVE_INFINITY)).toBeLessThanOrEqual(30);
  });

  it('that a kill interrupts loses nothing: the next start has the new settings', {
    timeout: 60_000,
  }, async () => {
    const { server, reload, change, track, original, finalized } = await openWorld();
    const acknowledged: string[] = [];
    for (const [index, delayMs] of [0, 205, 230].entries()) {
      const ids = [`a-${index}`, `b-${index}`];
      expect((await track(...ids)).status).toBe(202);
      acknowledged.push(...ids);
      change({ ...original, log: { level: index % 2 === 0 ? 'debug' : 'info' } });
      const reloading = reload().catch(() => undefined);
      await sleep(delayMs);
      await server.kill();
      await reloading;
      server.start();
      await server.listening();
      expect((await reload()).text).toBe('{"changes":[]}');
    }
    for (const id of acknowledged) await finalized(id);
  });
});
