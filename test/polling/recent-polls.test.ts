import { expect, it, onTestFinished } from 'vitest';
import { RecentPolls } from '../../src/polling/watcher.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import { openApp } from '../support/app/running-app.ts';
import { observation } from '../support/ledger/domain.ts';
import { tempFolder } from '../support/temp-folder.ts';

const UNTRACKED = '00000000-0000-4000-8000-000000000000';

it('an upstream shows its polls without ids', async () => {
  const sandbox = await startSandbox({ options: { speed: 200 } });
  onTestFinished(() => sandbox.close());
  const database = `${tempFolder()}/dawatch.db`;
  const app = await openApp({ database, upstreamUrl: sandbox.url });
  onTestFinished(() => app.close());
  const get = async (path: string) => JSON.parse((await call(app.url, path)).text);
  const id = sandbox.model.submit('data', Date.now());
  await post(app.url, { submission_id: id });
  await get(`${pathOf(id)}/wait?timeout_s=240`);

  await call(app.url, `/v1/get_submission_info?submission_id=${UNTRACKED}`);
  const [pacing] = (await get('/v1/pacing')).upstreams;
  expect(pacing.recent_polls.at(-1)).toEqual({
    at: expect.any(String),
    duration_ms: expect.any(Number),
    result: 'not_found',
  });
  const results = pacing.recent_polls.map(({ result }: { result: string }) => result);
  expect(results.slice(-2)).toEqual(['finalized', 'not_found']);
  expect(JSON.stringify(pacing)).not.toContain(UNTRACKED);
});

it('keeps the newest 2,000 polls of an upstream', () => {
  const recent = new RecentPolls();
  for (let at = 0; at < 2_500; at++) recent.add(observation('pending', at, 'a'));
  expect(recent.since(0).map(({ at }) => at)).toEqual(
    Array.from({ length: 2_000 }, (_, index) => 500 + index),
  );
});
