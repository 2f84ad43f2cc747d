import { expect, it } from 'vitest';
import { cli } from '../../../support/processes/cli.ts';

const UPSTREAM = {
  DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1',
  DAWATCH_UPSTREAM_API_KEY: 'a-key-of-the-upstream',
};

it('reports a missing Redis or upstream', async () => {
  const withoutRedis = await cli(['worker'], { env: UPSTREAM });
  expect(withoutRedis).toMatchObject({ code: 2, stdout: '' });
  expect(withoutRedis.stderr).toContain('DAWATCH_REDIS_URL');
  const withoutUpstream = await cli(['worker'], {
    env: { DAWATCH_REDIS_URL: 'redis://127.0.0.1:1' },
  });
  expect(withoutUpstream.code).toBe(2);
  expect(withoutUpstream.stderr).toContain('DAWATCH_UPSTREAM_URL');
});

it.each(['worker', 'serve', 'doctor'])(
  '`%s` names the setting of an address that Redis cannot have, and exits with 2',
  async (command) => {
    const { code, stdout, stderr } = await cli([command], {
      env: { ...UPSTREAM, DAWATCH_REDIS_URL: 'redis://:S3cret-100%@127.0.0.1:1' },
    });
    const output = stdout + stderr;
    const problem = 'must be encoded: in a user or password, write % as %25';
    expect([code, output]).toEqual([2, expect.stringContaining(`redis.url ${problem}`)]);
    expect(output).not.toContain('S3cret');
  },
);
