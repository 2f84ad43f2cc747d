import { expect, it } from 'vitest';
import { colourOf, plain, table } from '../../../src/cli/output.ts';
import { STATUSES } from '../../../src/submissions/submission.ts';
import { cli } from '../../support/processes/cli.ts';
import { serve } from '../../support/servers/upstream-server.ts';

const RED = '\u001b[31m';
const END = '\u001b[39m';

it('every status except tracking has a colour, and so has a state with a suffix', () => {
  expect(STATUSES.filter((status) => colourOf(status) === undefined)).toEqual(['tracking']);
  expect(colourOf('dead (attempts_used_up)')).toBe('red');
  expect(plain('red', 'as it is')).toBe('as it is');
});

it('colours do not change the width of a table column', () => {
  expect(
    table([
      ['a', 'id'],
      [`${RED}failed${END}`, 'x'],
    ]),
  ).toBe(`a       id\n${RED}failed${END}  x\n`);
});

it('are used if they are forced, and otherwise only on terminals', async () => {
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
