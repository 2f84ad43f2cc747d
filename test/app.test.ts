import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { App } from '../src/app.ts';
import { LedgerError } from '../src/ledger/errors.ts';
import { openDatabase } from '../src/ledger/open.ts';
import { restoreLedger } from '../src/ledger/restore.ts';
import { StartError } from '../src/operations/config/start-error.ts';
import { startSandbox } from '../src/sandbox/server.ts';
import {
  call,
  detailsOf,
  listOf,
  pathOf,
  post,
  submissionOf,
  trackedOf,
} from './support/app/http-calls.ts';
import { API_KEY, appForTest, openApp } from './support/app/running-app.ts';
import { openLedger } from './support/ledger/ledger-file.ts';
import { tempFolder } from './support/temp-folder.ts';
import { eventually } from './support/until.ts';
import { HeldClock } from './support/virtual-time/virtual-clock.ts';

type Setting = Parameters<typeof openApp>[0];

async function start(setting: Setting): Promise<App> {
  const app = await appForTest(setting);
  return app;
}

const newLedger = () => join(tempFolder(), 'ledger.db');
/** Starts without a configured key; returns the keys that were printed. */
async function startKeyless(database: string): Promise<{ app: App; keys: string[] }> {
  const keys: string[] = [];
  const app = await start({ database, apiKey: null, onNewKey: (key) => keys.push(key) });
  return { app, keys };
}

/** A raw connection, open until the server closes it. */
function openConnection(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    received += chunk;
  });
  socket.on('error', () => undefined);
  return {
    send: (text: string) => void socket.write(text),
    received: () => received,
    waitFor: (text: string) => eventually(() => expect(received).toContain(text)),
    ended: new Promise<void>((resolve) => socket.once('close', () => resolve())),
  };
}

it('removes the access of other users to the ledger at startup', async () => {
  const database = newLedger();
  openLedger({ file: database }).close();
  chmodSync(database, 0o644);
  await startKeyless(database);
  expect(statSync(database).mode & 0o777).toBe(0o600);
});

describe('without a configured key', () => {
  it.each(['0.0.0.0', 'example.org', '::ffff:192.0.2.1'])(
    'refuses to listen on %s',
    async (host) => {
      const keys: string[] = [];
      const database = newLedger();
      const starting = openApp({ database, apiKey: null, host, onNewKey: (key) => keys.push(key) });
      await expect(starting).rejects.toThrow(StartError);
      await expect(starting).rejects.toThrow('set DAWATCH_SERVICE_KEY');
      expect(keys).toEqual([]);
      // The failed start left nothing open: the same ledger can be opened at once.
      await start({ database });
    },
  );

  it.each(['127.0.0.1', 'localhost'])('listens on %s', async (host) => {
    const database = newLedger();
    const app = await start({ database, apiKey: null, host });
    expect((await call(app.url, '/livez')).status).toBe(200);
  });
});

it('listens on every address with a configured key, and stores the key nowhere', async () => {
  const folder = tempFolder();
  const app = await start({ database: join(folder, 'ledger.db'), host: '0.0.0.0' });
  const url = `http://127.0.0.1:${new URL(app.url).port}`;
  expect((await call(url, '/v1/submissions')).status).toBe(200);
  for (const name of readdirSync(folder))
    expect(readFileSync(join(folder, name)).toString('latin1'), name).not.toContain(API_KEY);
});

it('continues after a restart with every open submission until it is final', async () => {
  const sandbox = await startSandbox({ options: { speed: 200 } });
  onTestFinished(() => sandbox.close());
  const database = newLedger();
  sandbox.injectFault({ kind: 'html_503' });
  const before = await start({ database, upstreamUrl: sandbox.url });
  const ids = Array.from({ length: 20 }, (_, index) =>
    sandbox.model.submit(`data ${index}`, Date.now()),
  );
  const tracked = trackedOf(
    await post(before.url, { submission_ids: ids, metadata: { kept: true } }),
  );
  await before.close();

  sandbox.injectFault({ kind: 'none' });
  const after = await start({ database, upstreamUrl: sandbox.url });
  for (const [index, id] of ids.entries()) {
    expect(submissionOf(await call(after.url, `${pathOf(id)}/wait`)).status).toBe('finalized');
    const { history, metadata, tracked_at } = detailsOf(await call(after.url, pathOf(id)));
    expect({ metadata, tracked_at }).toEqual({
      metadata: { kept: true },
      tracked_at: tracked.submissions[index]?.tracked_at,
    });
    expect(history[0]).toMatchObject({ status: 'tracking', previous_status: null });
  }
});

describe('closing', () => {
  it('releases the ledger for the next start', async () => {
    const database = newLedger();
    const first = await start({ database });
    await post(first.url, { submission_id: 'kept' });
    await expect(openApp({ database })).rejects.toThrow(LedgerError);
    await first.close();
    const second = await start({ database });
    expect(listOf(await call(second.url, '/v1/submissions')).submissions).toMatchObject([
      { submission_id: 'kept' },
    ]);
  });

  it('does not wait for connections that never sent a request', async () => {
    const app = await start({ database: newLedger() });
    const silent = openConnection(app.url);
    const halting = openConnection(app.url);
    halting.send('GET /livez HTTP/1.1\r\nho');
    // A response on a third connection proves that the server has seen the two before it.
    await call(app.url, '/livez');
    await app.close();
    await Promise.all([silent.ended, halting.ended]);
    expect([silent.received(), halting.received()]).toEqual(['', '']);
  });

  it('completes requests in flight and requests received in part, then closes their connections', async () => {
    const database = newLedger();
    const app = await start({ database });
    const head = `HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\n`;
    const partial = openConnection(app.url);
    partial.send('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n');
    await partial.waitFor('{"status":"ok"}');
    partial.send(`GET /v1/submissions ${head}`);
    const inFlight = openConnection(app.url);
    inFlight.send(`POST /v1/submissions ${head}content-type: application/json\r\n`);
    inFlight.send('expect: 100-continue\r\ncontent-length: 24\r\n\r\n{');
    await inFlight.waitFor('HTTP/1.1 100 Continue');

    const closing = app.close();
    await eventually(() => expect(call(app.url, '/livez')).rejects.toThrow('ECONNREFUSED'));
    partial.send('\r\n');
    await partial.waitFor('"next_cursor":null');
    inFlight.send('"submission_id":"late"}');
    await Promise.all([closing, partial.ended, inFlight.ended]);
    expect(partial.received()).toMatch(/HTTP\/1\.1 200 .*HTTP\/1\.1 200 .*connection: close/is);
    expect(inFlight.received()).toMatch(/HTTP\/1\.1 202 .*connection: close/is);
    const again = await start({ database });
    expect((await call(again.url, pathOf('late'))).status).toBe(200);
  });
});

it('closes everything again if it cannot listen, without sending a poll', async () => {
  const occupant = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => occupant.once('listening', resolve));
  onTestFinished(() => void occupant.close());
  const { port } = occupant.address() as AddressInfo;
  const sandbox = await startSandbox({ options: {} });
  onTestFinished(() => sandbox.close());
  const setting = { database: newLedger(), upstreamUrl: sandbox.url };
  const before = await openApp(setting);
  await post(before.url, { submission_id: sandbox.model.submit('data', Date.now()) });
  await before.close();
  const { requests } = sandbox.stats();
  await expect(openApp({ ...setting, port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect(sandbox.stats().requests).toBe(requests);
  await start(setting);
});

it('completes although a client has sent only half of its request', async () => {
  const app = await start({ database: newLedger() });
  const client = openConnection(app.url);
  const head = `POST /v1/submissions HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\n`;
  client.send(`${head}content-length: 50\r\n\r\n{`);
  // Only a response to a second client proves that the head of the first request was read.
  await call(app.url, '/livez');
  await app.close();
  await client.ended;
});

describe('a ledger whose file is removed while a server uses it', () => {
  const FILE_CHECK_MS = 10_000;
  const ALL = ['', '-wal', '-shm', '.lock', '.primary'];

  async function openWorld() {
    const clock = new HeldClock(FILE_CHECK_MS);
    const database = newLedger();
    const detached = Promise.withResolvers<string>();
    const app = await start({
      ...{ database, clock },
      onLog(line) {
        const { event, copy } = JSON.parse(line);
        if (event === 'ledger.detached') detached.resolve(copy);
      },
    });
    expect((await post(app.url, { submission_id: 'kept' })).status).toBe(202);
    return { app, clock, database, saved: detached.promise };
  }

  it.each([
    ['all its files', ALL],
    ['its log', ['-wal']],
  ])('acknowledges nothing, alerts, and saves the data: without %s', async (_, removed) => {
    const { app, clock, database, saved } = await openWorld();
    for (const name of removed) rmSync(`${database}${name}`);
    expect((await post(app.url, { submission_id: 'lost' })).status).toBe(503);
    const readiness = await call(app.url, '/readyz');
    expect([readiness.status, JSON.parse(readiness.text).ledger]).toEqual([503, 'not_writable']);
    expect((await call(app.url, pathOf('kept'))).status).toBe(200);
    await eventually(async () =>
      expect((await call(app.url, '/v1/alerts')).text).toContain('ledger_not_writable'),
    );
    clock.fire(FILE_CHECK_MS);
    const copy = await saved;
    await app.close();
    if (removed.includes(''))
      expect(() => openDatabase({ file: database, now: 0 })).toThrow(`but ${copy} is left of one`);
    restoreLedger({ file: database, backup: copy, now: 0 });
    const again = await start({ database });
    expect((await call(again.url, pathOf('kept'))).status).toBe(200);
  });

  it('saves the data before it stops, too', async () => {
    const { app, database, saved } = await openWorld();
    rmSync(dirname(database), { recursive: true });
    await app.close();
    expect(openLedger({ file: await saved }).submissions.get('kept')).toBeDefined();
  });

  it('works again when the file is back', async () => {
    const { app, database } = await openWorld();
    renameSync(database, `${database}.moved`);
    expect((await call(app.url, '/readyz')).status).toBe(503);
    renameSync(`${database}.moved`, database);
    // A poll that could not be stored is repeated after a pause.
    await eventually(async () => expect((await call(app.url, '/readyz')).status).toBe(200));
    expect((await post(app.url, { submission_id: 'later' })).status).toBe(202);
  });
});
