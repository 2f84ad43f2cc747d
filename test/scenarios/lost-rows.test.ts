import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startSandbox } from '../../src/sandbox/server.ts';
import { call } from '../support/app/http-calls.ts';
import { openApp } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { byAge } from '../support/virtual-time/pacing.ts';

const UNTIL = { timeout: 30_000, interval: 50 };
/** Nothing becomes final by itself. */
const SLOW = { deadRate: 1, rowDelayMs: 0 };

test('an upstream that restarted without its rows is up again with the first submission that it has', async () => {
  const first = await startSandbox({ options: SLOW });
  const port = Number(new URL(first.url).port);
  const app = await openApp({
    database: join(tempFolder(), 'ledger.db'),
    upstreamUrl: first.url,
    policy: () => byAge,
  });
  onTestFinished(() => app.close());
  const track = (ids: string[]) =>
    call(app.url, '/v1/submissions', { method: 'POST', body: { submission_ids: ids } });
  const read = async (path: string) => JSON.parse((await call(app.url, path)).text);
  const statusOf = async (id: string) => (await read(`/v1/submissions/${id}`)).status;
  const stateOf = async () => (await read('/readyz')).upstreams.default.state;

  const lost = Array.from({ length: 12 }, () => first.model.submit('data', Date.now()));
  await track(lost);
  for (const id of lost) await vi.waitUntil(async () => (await statusOf(id)) !== 'tracking', UNTIL);
  await first.close();
  const second = await startSandbox({ options: { ...SLOW, seed: 2 }, port });
  onTestFinished(() => second.close());
  await vi.waitUntil(async () => (await stateOf()) === 'down', UNTIL);

  const id = second.model.submit('data', Date.now());
  await track([id]);
  await vi.waitUntil(async () => (await stateOf()) === 'up', UNTIL);
  expect(await statusOf(id)).not.toBe('tracking');
});
