import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
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
const GATEWAY = 'the-key-of-the-gateway';
const ADMIN = { authorization: `Bearer ${CRASH_ADMIN_TOKEN}` };
const SERVICE = { 'x-api-key': CRASH_API_KEY };
const UNTIL = { timeout: 15_000, interval: 10 };

/**
 * An upstream that finalizes every submission at its first poll, and holds its responses between
 * `hold` and `release`.
 */
async function openUpstream() {
  const polls: { id: string; key: string; gateway: unknown }[] = [];
  const held: (() => void)[] = [];
  const refused = new Set<string>();
  let isHolding = false;
  const { url } = await serve((request, response: ServerResponse) => {
    const id =
      new URL(request.url ?? '', 'http://upstream').searchParams.get('submission_id') ?? '';
    const key = String(request.headers['x-api-key']);
    polls.push({ id, key, gateway: request.headers['x-gateway'] });
    if (refused.has(key)) {
      response.writeHead(401).end('Invalid API key');
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
    const withKey = (budget: object, headers = {}) => ({
      default: { lag_price, url: upstream.url, api_key_file: secret.path, budget, headers },
    });
    world.change({
      upstreams: withKey({}),
      channels: { ops: channel(first.url) },
      routes: route('ops'),
    });
    // The same key, now in a file.
    expect(await world.hangUp()).toMatchObject({ changes: 'none' });
    const testChannel = (name: string) =>
      call(server.url, `/v1/channels/${name}/test`, { method: 'POST', headers: ADMIN });
    const reader = await readEvents(server.url, '', SERVICE);
    await testChannel('ops');
    await vi.waitUntil(() => held.length === 1, UNTIL);
    upstream.hold();
    await world.track('a');
    await vi.waitUntil(() => upstream.polls.length === 1, UNTIL);

    secret.write(`${KEYS[1]}\n`);
    world.change({
      upstreams: withKey({ requests: 40, concurrency: 16 }, { 'X-Gateway': GATEWAY }),
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
        'upstreams.default.headers.X-Gateway',
      ].join(', '),
    });

    upstream.release();
    for (const response of held) response.end();
    await world.track('b');
    for (const id of ['a', 'b']) await world.finalized(id);
    for (const name of ['ops', 'more']) await testChannel(name);
    await vi.waitUntil(() => server.logged('delivery.delivered').length === 3, UNTIL);
    await vi.waitUntil(() => fourth.requests.length === 1, UNTIL);
    expect(upstream.polls).toMatchObject([
      { id: 'a', key: KEYS[0], gateway: undefined },
      { id: 'b', key: KEYS[1], gateway: GATEWAY },
    ]);
    expect([first, second, third].map(({ requests }) => requests.length)).toEqual([1, 1, 1]);
    const { text: channels } = await call(server.url, '/v1/channels', { headers: ADMIN });
    expect(JSON.parse(channels).channels).toMatchObject(
      ['ops', 'more'].map((name) => ({ name, routes: [{ types: ['submission.finalized'] }] })),
    );
    await reader.has(5);
    expect(reader.received.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect(server.logged('http.responded').length).toBeGreaterThan(0);
    const pacing = await server.client.pacing();
    expect(pacing.upstreams[0]).toMatchObject({ budget: { requests: 40 } });
    for (const text of [...KEYS, GATEWAY, 'the-path-is-secret'])
      expect(server.lines.join('\n')).not.toContain(text);
  });

  it('reads secret files again on a server without a settings file', async () => {
    const upstream = await openUpstream();
    const cwd = tempFolder();
    const key = mountSecret(join(cwd), 'service-key', 'the-first-service-key-0123456789');
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
    expect(await statusWith('the-first-service-key-0123456789')).toBe(200);
    key.write('the-second-service-key-0123456789');
    child.kill('SIGHUP');
    await vi.waitUntil(() => output.includes('"changes":"auth.api_key"'), UNTIL);
    expect([
      await statusWith('the-first-service-key-0123456789'),
      await statusWith('the-second-service-key-0123456789'),
    ]).toEqual([401, 200]);
  });

  it.skipIf(isRedisMissing())(
    'gives a worker the new key and headers; it never reads the secret files of the server',
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
        upstreams: {
          default: {
            url: upstream.url,
            api_key: key,
            headers: { 'X-Gateway': `for ${key}` },
            bearer_file: '/not/mounted',
          },
        },
        redis: { url: redis.url },
      });
      const worker = prepareWorker(folder, 'one', settingsWith(KEYS[0] ?? ''));
      worker.start();
      const pollWith = async (id: string, key: string | undefined) => {
        await post(app.url, { submission_ids: [id] });
        await vi.waitUntil(() => upstream.polls.some((poll) => poll.id === id), UNTIL);
        expect(upstream.polls.find((poll) => poll.id === id)).toMatchObject({
          key,
          gateway: `for ${key}`,
        });
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
          { changes: 'upstreams.default.api_key, upstreams.default.headers.X-Gateway' },
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
  it('needs the role admin, is audited, and applies and reports each change once', async () => {
    const { server, upstream, reload, change, original, track, finalized } = await openWorld();
    expect(problemOf(await reload(SERVICE))).toMatchObject({ status: 403 });
    expect(problemOf(await reload({}))).toMatchObject({ status: 401 });
    expect(await reload()).toMatchObject({ status: 200, text: '{"changes":[]}' });
    change({ ...original, log: { level: 'warn' } });
    const responses = await Promise.all([reload(), reload(), reload()]);
    const reports = responses.flatMap(({ text }) => JSON.parse(text).changes as string[]);
    expect(reports).toEqual(['log.level']);
    const audit = JSON.parse(
      (await call(server.url, '/v1/audit?action=settings.reload', { headers: ADMIN })).text,
    );
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

    // With a valid key, polling resumes at once, although the next probe is half a minute away.
    upstream.refused.add(KEYS[0] ?? '');
    for (const id of ['a', 'b', 'c', 'd', 'e']) await track(id);
    await vi.waitUntil(() => server.logged('upstream.unauthorized').length > 0, UNTIL);
    change({ upstreams: { default: { lag_price, url: upstream.url, api_key: KEYS[1] } } });
    expect((await reload()).status).toBe(200);
    await finalized('a');
    expect(upstream.polls.at(-1)?.key).toBe(KEYS[1]);
  });

  it('with anything invalid applies nothing, names the reason without secrets, and the server continues', async () => {
    const { server, folder, file, original, reload, change, upstream } = await openWorld();
    const upstreamWith = (fields: object) => ({
      default: { lag_price, url: upstream.url, ...fields },
    });
    const auth = {
      api_key: 'another-service-key-of-32-characters',
      admin_token: CRASH_ADMIN_TOKEN,
    };
    const complete = JSON.stringify({ ...original, auth }, null, 1);
    const cases: [name: string, write: () => void, reason: string][] = [
      ['an unknown setting', () => change({ auth, chanels: {} }), 'chanels is not a setting'],
      [
        'a file cut in the middle',
        () => writeFileSync(file, complete.slice(0, complete.length / 2)),
        file,
      ],
      ['no file', () => undefined, 'the file does not exist'],
      [
        'a missing secret file',
        () => change({ auth, upstreams: upstreamWith({ api_key_file: join(folder, 'none') }) }),
        'does not exist',
      ],
      [
        'a changed port',
        () => change({ auth, server: { port: 1 } }),
        'a restart is needed to change server.port',
      ],
      ['no credential', () => change({ auth: {} }), 'no credential would be left'],
    ];
    for (const [name, write, reason] of cases) {
      rmSync(file);
      write();
      const problem = problemOf(await reload());
      expect(problem, name).toMatchObject({ status: 409, detail: expect.stringContaining(reason) });
      expect(problem.detail).toMatch(/^nothing was applied: /);
      expect((await call(server.url, '/v1/overview', { headers: SERVICE })).status, name).toBe(200);
      writeFileSync(file, complete);
    }
    expect(server.logged('settings.reload_refused')[0]).toMatchObject({
      level: 'error',
      caller: 'DAWATCH_ADMIN_TOKEN',
      address: '127.0.0.1',
    });
    expect(await reload()).toMatchObject({ status: 200, text: '{"changes":["auth.api_key"]}' });
    expect((await call(server.url, '/v1/overview', { headers: SERVICE })).status).toBe(401);
    for (const text of ['another-service-key-of-32-characters', KEYS[0]])
      expect(server.lines.join('\n')).not.toContain(text);
  });
});
