import { describe, expect, it } from 'vitest';
import { DawatchClient } from '../../src/client/index.ts';
import { API_KEY, useAppWithSandbox } from '../support/app/running-app.ts';
import { serve } from '../support/servers/upstream-server.ts';

const app = useAppWithSandbox();
const client = (url = app.url) => new DawatchClient({ url, apiKey: API_KEY });

it('resolves with the current submission after the timeout', async () => {
  await client().track(['open'], { upstream: 'other' });
  expect(await client().waitUntilFinal('open', { timeoutMs: 0 })).toMatchObject({
    status: 'tracking',
  });
  expect(await client().waitUntilFinal('open', { timeoutMs: 30 })).toMatchObject({
    status: 'tracking',
  });
});

it('repeats long polls, with a delay after a premature response', async () => {
  const server = await serve((_, response) => {
    const status = server.requests.length < 4 ? 'pending' : 'finalized';
    if (server.requests.length === 2) response.destroy();
    else response.setHeader('content-type', 'application/json').end(JSON.stringify({ status }));
  });
  expect(await client(server.url).waitUntilFinal('a')).toMatchObject({ status: 'finalized' });
  expect(server.requests.map(({ url }) => url)).toEqual(
    Array(4).fill('/v1/submissions/a/wait?timeout_s=20'),
  );
});

describe('rejects', () => {
  it('at once for an untracked submission', async () => {
    await expect(client().waitUntilFinal('never')).rejects.toMatchObject({
      name: 'ApiError',
      status: 404,
    });
  });

  it('when its signal aborts, with the reason of the signal', async () => {
    await client().track(['aborted'], { upstream: 'other' });
    const stop = new AbortController();
    const waiting = client().waitUntilFinal('aborted', { signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(client().waitUntilFinal('aborted', { signal: stop.signal })).rejects.toThrow(
      'enough',
    );
  });

  it('after an outage, with the last known state of the submission', async () => {
    const submission = {
      submission_id: 'a',
      status: 'failing',
      upstream_state: 'Error',
      error: 'no gas',
      not_found_since: null,
      last_polled_at: '2026-01-02T03:04:05Z',
      next_poll_at: '2026-01-02T03:04:09Z',
    };
    const server = await serve((_, response) => {
      if (server.requests.length > 1) response.destroy();
      else response.setHeader('content-type', 'application/json').end(JSON.stringify(submission));
    });
    await expect(client(server.url).waitUntilFinal('a', { timeoutMs: 10 })).rejects.toThrow(
      `no response from ${server.url}: the connection was closed (UND_ERR_SOCKET); still open: a: failing, upstream state Error, error: no gas; last poll 2026-01-02T03:04:05Z, next poll 2026-01-02T03:04:09Z`,
    );
  });
});
