import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { reading, scrape } from '../support/app/metrics.ts';
import { appForTest } from '../support/app/running-app.ts';
import { openReceiver, type ScriptedResponse } from '../support/servers/receiver.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

/** A server whose heartbeat calls a receiver with these responses every 20 ms. */
async function open(script: ScriptedResponse[], database = join(tempFolder(), 'ledger.db')) {
  const receiver = await openReceiver(script);
  const lines: string[] = [];
  const app = await appForTest({
    database,
    heartbeat: { url: `${receiver.url}/ping/SECRET`, every_s: 0.02 },
    onLog: (line) => lines.push(line),
  });
  const logged = () => lines.flatMap((line) => /heartbeat\.\w+/.exec(line)?.[0] ?? []);
  return { app, receiver, lines, logged };
}

describe('the heartbeat of a server', () => {
  it('reports the first of several failures, and the end of them, without the address', async () => {
    const failures = [{ status: 500 }, { body: 'OK (not found)' }, { body: 'OK (rate limited)' }];
    const { app, receiver, lines, logged } = await open([{}, ...failures, {}]);
    await until(() => logged().length === 2);
    expect(logged()).toEqual(['heartbeat.failed', 'heartbeat.resumed']);
    expect(receiver.requests.length).toBeGreaterThanOrEqual(5);
    expect(
      reading((await scrape(app.url)).text, 'dawatch_heartbeats_total', { result: 'failed' }),
    ).toBe(3);
    expect(lines.join()).not.toContain('SECRET');
  });
});
