import { expect, it, onTestFinished } from 'vitest';
import { RecentPolls } from '../../src/polling/watcher.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import { openApp } from '../support/app/running-app.ts';
import { observation } from '../support/ledger/domain.ts';
import { tempFolder } from '../support/temp-folder.ts';

const UNTRACKED = '00000000-0000-4000-8000-000000000000';

it('a submission shows its polls, and an upstream all polls without ids, since the start', async () => {
  const sandbox = await startSandbox({ options: { speed: 200 } });
  onTestFinished(() => sandbox.close());
  const database = `${tempFolder()}/dawatch.db`;
  let app = await openApp({ database, upstreamUrl: sandbox.url });
  onTestFinished(() => app.close());
  const get = async (path: string) => JSON.parse((await call(app.url, path)).text);
  const id = sandbox.model.submit('data', Date.now());
  await post(app.url, { submission_id: id });
  await get(`${pathOf(id)}/wait?timeout_s=240`);

  const { polls, last_polled_at, recent_polls } = await get(pathOf(id));
  expect(recent_polls).toHaveLength(polls);
  expect(recent_polls.at(-1)).toEqual({
    at: last_polled_at,
    duration_ms: expect.any(Number),
    result: 'finalized',
  });

  await call(app.url, `/v1/get_submission_info?submission_id=${UNTRACKED}`);
  const [pacing] = (await get('/v1/pacing')).upstreams;
  const results = pacing.recent_polls.map(({ result }: { result: string }) => result);
  expect(results.slice(-2)).toEqual(['finalized', 'not_found']);
  expect(JSON.stringify(pacing)).not.toContain(UNTRACKED);

  await app.close();
  app = await openApp({ database, upstreamUrl: sandbox.url });
  expect(await get(pathOf(id))).toMatchObject({ polls, recent_polls: [] });
});

it('keeps the newest 2,000 polls of an upstream', () => {
  const recent = new RecentPolls();
  for (let at = 0; at < 2_500; at++)
    recent.add(observation('pending', at, at % 2 === 0 ? 'a' : 'b'));
  expect(recent.since(0).map(({ at }) => at)).toEqual(
    Array.from({ length: 2_000 }, (_, index) => 500 + index),
  );
  expect(recent.of('a', 2_000)).toHaveLength(1_000);
  expect(recent.of('b', 2).map(({ at }) => at)).toEqual([2_497, 2_499]);
});
