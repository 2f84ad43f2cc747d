import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../src/sandbox/server.ts';
import { call } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';

it('lookups of one credential do not wait behind all lookups of another', async () => {
  const sandbox = await startSandbox({ options: { speed: 200 } });
  onTestFinished(() => sandbox.close());
  const app = await openApp({
    database: join(tempFolder(), 'ledger.db'),
    upstreamUrl: sandbox.url,
    upstream: { budget: { requests: 20, per_s: 1, concurrency: 4 } },
    adminToken: ADMIN_TOKEN,
  });
  onTestFinished(() => app.close());
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const lookUp = (key: string) =>
    call(app.url, `/v1/get_submission_info?submission_id=${randomUUID()}`, {
      headers: { 'x-api-key': key },
      signal: gone.signal,
    });
  let responseCount = 0;
  const busy = Array.from({ length: 200 }, () =>
    lookUp(API_KEY).then(
      () => (responseCount += 1),
      () => undefined,
    ),
  );
  // The budget of the first second is exhausted then.
  await Promise.any(busy);
  const others = await Promise.all([lookUp(ADMIN_TOKEN), lookUp(ADMIN_TOKEN), lookUp(ADMIN_TOKEN)]);
  expect(others.map(({ status }) => status)).toEqual([404, 404, 404]);
  expect(responseCount).toBeLessThan(100);
});
