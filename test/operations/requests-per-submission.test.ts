import { expect, it } from 'vitest';
import { LEARNS_NOTHING } from '../../bench/pacing/rules.ts';
import type { PolicyFactory } from '../../src/pacing/index.ts';
import { call, post } from '../support/app/http-calls.ts';
import { reading, scrape } from '../support/app/metrics.ts';
import { appForTest } from '../support/app/running-app.ts';
import { finalEnvelope } from '../support/ledger/domain.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const everyTenMs: PolicyFactory = () => ({
  ...LEARNS_NOTHING,
  register: (_item, _known, now) => now,
  learn: (_item, _result, now) => now + 10,
});

/** Tracks submissions that become final with their last poll, and one that never does. */
async function finalize(pollsOfEach: readonly number[]) {
  const left = new Map(pollsOfEach.map((polls, index) => [`${index}`, polls]));
  const upstream = await serve(({ url = '' }, response) => {
    const id = new URL(url, 'http://upstream').searchParams.get('submission_id') ?? '';
    const polls = (left.get(id) ?? Number.POSITIVE_INFINITY) - 1;
    left.set(id, polls);
    const pending = { state: 'Pending', error: null, data: null };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(polls > 0 ? pending : finalEnvelope({}, { id })));
  });
  const database = `${tempFolder()}/dawatch.db`;
  const open = async () => {
    const app = await appForTest({ database, upstreamUrl: upstream.url, policy: () => everyTenMs });
    return app;
  };
  const app = await open();
  await post(app.url, { submission_ids: [...left.keys(), 'never'] });
  await expect
    .poll(async () => JSON.parse((await call(app.url, '/v1/overview')).text).total.finalized)
    .toBe(pollsOfEach.length);
  return { app, open };
}

async function figuresOf(url: string) {
  const read = async (path: string) => JSON.parse((await call(url, path)).text);
  return {
    overview: (await read('/v1/overview')).total.requests_per_submission,
    pacing: (await read('/v1/pacing')).upstreams[0].last_hour.requests_per_submission,
  };
}

it('is the same wherever it is shown, also after a restart', async () => {
  const { app, open } = await finalize([...Array(13).fill(1), ...Array(7).fill(5)]);
  const expected = { overview: 2.4, pacing: 2.4 };
  expect(await figuresOf(app.url)).toEqual(expected);
  const { text } = await scrape(app.url);
  const metric = (part: 'sum' | 'count') =>
    reading(text, `dawatch_requests_per_submission_${part}`, { upstream: 'default' }) ?? 0;
  expect(metric('sum') / metric('count')).toBe(2.4);
  await app.close();
  expect(await figuresOf((await open()).url)).toEqual(expected);
});

it('is not shown while too few submissions have become final', async () => {
  const { app } = await finalize(Array(19).fill(3));
  expect(await figuresOf(app.url)).toEqual({
    overview: null,
    pacing: null,
  });
});
