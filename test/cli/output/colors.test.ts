import { expect, it } from 'vitest';
import { cli } from '../../support/processes/cli.ts';
import { serve } from '../../support/servers/upstream-server.ts';

it('colors are used if they are forced, and otherwise only on terminals', async () => {
  const submission = {
    status: 'failed',
    submission_id: 's1',
    tracked_at: '2026-01-02T03:04:05.000Z',
    polls: 3,
  };
  const { url } = await serve((_request, response) =>
    response.end(JSON.stringify({ submissions: [submission], next_cursor: null })),
  );
  // `cli` itself refuses every escape code in what it has read.
  expect((await cli(['list'], { env: { DAWATCH_URL: url } })).stdout).toMatch(
    /^failed {2}s1 {2}tracked/,
  );
  await expect(cli(['list'], { env: { DAWATCH_URL: url, FORCE_COLOR: '1' } })).rejects.toThrow(
    /\[31m/,
  );
});
