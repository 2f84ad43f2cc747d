import { beforeAll, describe, expect, it } from 'vitest';
import { call, pathOf, post } from '../../../support/app/http-calls.ts';
import { useApp } from '../../../support/app/running-app.ts';
import { cli, cliProcess } from '../../../support/processes/cli.ts';

const app = useApp();
const run = (args: string[], runs = cli, input = '') =>
  runs(args, { env: { DAWATCH_URL: app.url }, input });
const idsIn = (stdout: string) =>
  (JSON.parse(stdout).submissions as { submission_id: string }[]).map(
    ({ submission_id }) => submission_id,
  );

beforeAll(async () => {
  await post(app.url, {
    submission_ids: ['a1', 'a2', 'a3'],
    metadata: { order: 4711, note: 'a=b' },
  });
  await post(app.url, { submission_ids: ['b1', 'b2'], upstream: 'other' });
  for (const id of ['a2', 'b1']) await call(app.url, pathOf(id), { method: 'DELETE' });
});

describe('list', () => {
  it('prints one line per submission, newest first', async () => {
    const { code, stdout } = await run(['list', '--limit', '2'], cliProcess);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^tracking {3}b2 {2}tracked \S+Z {2}\d+ requests?\ncancelled {2}b1 {2}tracked .*\n$/,
    );
  });

  it.each([
    [
      ['--status', 'cancelled,expired'],
      ['b1', 'a2'],
    ],
    [
      ['--status', 'cancelled', '--status', 'tracking', '--prefix', 'a'],
      ['a1', 'a2', 'a3'],
    ],
    [
      ['--upstream', 'other'],
      ['b2', 'b1'],
    ],
    [
      ['--metadata', 'order=4711', '--metadata', 'note=a=b', '--limit', '2'],
      ['a3', 'a2'],
    ],
    [
      ['--since', '1h', '--status', 'tracking'],
      ['b2', 'a3', 'a1'],
    ],
    [['--until', '1h'], []],
    [
      ['--search', 'A=B', '--status', 'tracking'],
      ['a3', 'a1'],
    ],
    [
      ['--ended-since', '1h', '--ended-until', '2100-01-01T00:00:00Z'],
      ['b1', 'a2'],
    ],
  ])('with %j', async (args, expected) => {
    const { code, stdout } = await run(['list', ...args, '--json']);
    expect([code, idsIn(stdout)]).toEqual([0, expected]);
    const count = await run(['count', ...args.filter((arg) => arg !== '--limit' && arg !== '2')]);
    expect(count.stdout).toBe(`${args.includes('--limit') ? 3 : expected.length}\n`);
  });

  it('continues at a cursor', async () => {
    const first = await run(['list', '--limit', '3', '--json']);
    const rest = await run(['list', '--cursor', JSON.parse(first.stdout).next_cursor, '--json']);
    expect([...idsIn(first.stdout), ...idsIn(rest.stdout)]).toEqual(['b2', 'b1', 'a3', 'a2', 'a1']);
    expect(JSON.parse(rest.stdout).next_cursor).toBeNull();
  });

  it.each([
    [['--status', 'done'], /is not a status/],
    [['--metadata', 'order'], /name=value/],
    [['--metadata', 'a=1', '--metadata', 'a=2'], /given twice/],
    [['--since', 'yesterday'], /duration like 2h/],
    [['--upstream', 'nowhere'], /no upstream is named "nowhere"/],
    [['--since', '1h', '--until', '2h'], /must be after the start/],
    [['--search', 'x'.repeat(129)], /search.*128/s],
    [['--cursor', 'x'], /not a cursor/],
    [['--limit', '0'], /at least 1/],
  ])('refuses %j', async (args, message) => {
    const { code, stdout, stderr } = await run(['list', ...args]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
  });
});

it('count prints JSON', async () => {
  const { stdout } = await run(['count', '--json', '--status', 'cancelled'], cliProcess);
  expect(JSON.parse(stdout)).toEqual({ count: 2 });
});

describe('lookup', () => {
  it('prints the submissions of all ids', async () => {
    const { code, stdout } = await run(['lookup', 'b1', 'a1'], cliProcess);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^cancelled {2}b1 .*\ntracking {3}a1 .*\n$/);
  });

  it('reads ids from stdin, reports those that are not tracked, and exits with 2', async () => {
    const ids = ['a1', ...Array.from({ length: 1_200 }, (_, index) => `never-${index}`), 'b2'];
    const { code, stdout, stderr } = await run(['lookup'], cli, ids.join('\n'));
    expect(code).toBe(2);
    expect(stdout).toMatch(/^tracking {2}a1 .*\ntracking {2}b2 .*\n$/);
    expect(stderr).toMatch(/^dawatch: 1200 ids not tracked:\n {2}never-0\n/);
    const json = await run(['lookup', '--json', 'a1', 'never'], cli);
    expect([json.code, json.stderr]).toEqual([2, '']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      submissions: [{ submission_id: 'a1' }],
      not_found: ['never'],
    });
  });
});
