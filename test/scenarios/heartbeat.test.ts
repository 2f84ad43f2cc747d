import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { call } from '../support/app/http-calls.ts';
import { reading, scrape } from '../support/app/metrics.ts';
import { openApp } from '../support/app/running-app.ts';
import { holdSyncs } from '../support/ledger/held-syncs.ts';
import { openReceiver, type ScriptedResponse } from '../support/servers/receiver.ts';
import { tempFolder } from '../support/temp-folder.ts';

const UNTIL = { timeout: 15_000, interval: 10 };

/** A server whose heartbeat calls a receiver with these responses every 20 ms. */
async function open(script: ScriptedResponse[], database = join(tempFolder(), 'ledger.db')) {
  const receiver = await openReceiver(script);
  const lines: string[] = [];
  const app = await openApp({
    database,
    heartbeat: { url: `${receiver.url}/ping/SECRET`, every_s: 0.02 },
    onLog: (line) => lines.push(line),
  });
  onTestFinished(() => app.close());
  const logged = () => lines.flatMap((line) => /heartbeat\.\w+/.exec(line)?.[0] ?? []);
  return { app, receiver, lines, logged };
}

describe('the heartbeat of a server', () => {
  it('reports the first of several failures, and the end of them, without the address', async () => {
    const failure = { status: 500 };
    const { app, receiver, lines, logged } = await open([{}, failure, failure, failure, {}]);
    await vi.waitUntil(() => logged().length === 2, UNTIL);
    expect(logged()).toEqual(['heartbeat.failed', 'heartbeat.resumed']);
    expect(receiver.requests.length).toBeGreaterThanOrEqual(5);
    expect(
      reading((await scrape(app.url)).text, 'dawatch_heartbeats_total', { result: 'failed' }),
    ).toBe(3);
    expect(lines.join()).not.toContain('SECRET');
  });

  it('is withheld, the server is not ready, and an alert that is not recorded yet fires, while the disk hangs', async () => {
    const database = join(tempFolder(), 'ledger.db');
    const { app, lines, logged } = await open([{}], database);
    const syncs = holdSyncs(database);
    await vi.waitUntil(() => syncs.isHolding(), UNTIL);
    expect((await call(app.url, '/readyz')).status).toBe(200);
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 11_000);
    onTestFinished(() => clock.mockRestore());
    await vi.waitUntil(() => logged().includes('heartbeat.withheld'), UNTIL);
    expect(lines.join()).toContain('the disk of the ledger does not end a sync');
    const { status, text } = await call(app.url, '/readyz');
    expect([status, JSON.parse(text)]).toEqual([
      503,
      expect.objectContaining({ ledger: 'not_writable' }),
    ]);
    const alerts = async (query: string) =>
      JSON.parse((await call(app.url, `/v1/alerts${query}`)).text).alerts;
    const alert = { id: 0, rule: 'ledger_not_writable', subject: 'ledger', firing: true };
    await vi.waitFor(
      async () => expect(await alerts('')).toEqual([expect.objectContaining(alert)]),
      UNTIL,
    );
    expect(await alerts('?state=resolved')).toEqual([]);
    syncs.release();
    await vi.waitUntil(() => logged().includes('heartbeat.resumed'), UNTIL);
    await vi.waitFor(
      async () =>
        expect(await alerts('?state=resolved')).toEqual([
          expect.objectContaining({ ...alert, id: 1, firing: false }),
        ]),
      UNTIL,
    );
    expect((await call(app.url, '/readyz')).status).toBe(200);
  });
});
