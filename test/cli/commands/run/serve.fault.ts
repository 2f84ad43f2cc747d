import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { call, post } from '../../../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../../../support/app/lookups.ts';
import { prepareServer } from '../../../support/processes/killable-server.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

describe('goes on without its log', () => {
  it.skipIf(!existsSync('/dev/full')).each([
    ['a full disk', 'exec "$@" > /dev/full 2> /dev/full'],
    ['a reader that ends', 'mkfifo $0; true < $0 & exec "$@" > $0'],
  ])('%s', async (_, script) => {
    const folder = tempFolder();
    const server = await prepareServer(folder, {
      // Without a key, one is created and printed to stderr.
      auth: { admin_token: ADMIN_TOKEN },
      log: { level: 'debug' },
      upstreams: { default: { url: 'http://127.0.0.1:1' } },
    });
    server.start({ through: ['sh', '-c', script, join(folder, 'pipe')] });
    await server.listening();
    for (let count = 0; count < 5; count++)
      expect((await post(server.url, { submission_id: `s${count}` }, AS_ADMIN)).status).toBe(202);
    const get = async (path: string) => (await call(server.url, path, { headers: AS_ADMIN })).text;
    expect(JSON.parse(await get('/readyz')).log_lines_dropped).toBeGreaterThan(5);
    expect(await get('/metrics')).toMatch(/^dawatch_log_lines_dropped_total [1-9]/m);
    expect(await server.stop()).toBe(0);
  });
});
