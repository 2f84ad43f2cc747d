import { describe, expect, it } from 'vitest';
import { call, pathOf, post } from '../../../support/app/http-calls.ts';
import { useApp } from '../../../support/app/running-app.ts';
import { cli } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';

const app = useApp();
const run = (line: string, runs = cli) => runs(line.split(' '), { env: { DAWATCH_URL: app.url } });
const idsIn = (stdout: string) =>
  stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).submission_id]));

app.prepare(async () => {
  await post(app.url, {
    submission_ids: ['a1', 'a2', 'a3'],
    metadata: { order: 4711, note: 'a=b' },
  });
  await post(app.url, { submission_ids: ['b1', 'b2'], upstream: 'other' });
  for (const id of ['a2', 'b1']) await call(app.url, pathOf(id), { method: 'DELETE' });
});

it('prints one line per submission, newest first', async () => {
  const { code, stdout } = await run('list --limit 2', cli);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^tracking {3}b2 {2}tracked \S+Z {2}\d+ requests?\ncancelled {2}b1 {2}tracked .*\n$/,
  );
});

it.each([
  ['short', 5, /A valid credential is required.*\(the key was read from DAWATCH_API_KEY; /],
  ['"in quotes"', 2, /^dawatch: DAWATCH_API_KEY must not be in quotes; remove them\n$/],
  ['a key', 2, /^dawatch: DAWATCH_API_KEY must be printable ASCII without spaces\n$/],
])('names the variable of the key %j, and no setting', async (key, exitCode, reason) => {
  const env = { DAWATCH_URL: app.url, DAWATCH_API_KEY: key };
  const { code, stderr } = await cli(['list'], { env });
  expect([code, stderr]).toEqual([exitCode, expect.stringMatching(reason)]);
  expect(stderr).not.toMatch(/settings|auth\.service_key/);
});

it.each([
  ['--status cancelled,expired', 'b1 a2'],
  ['--status cancelled --status tracking --prefix a', 'a1 a2 a3'],
  ['--chain contradicted,unavailable', ''],
  ['--upstream other', 'b2 b1'],
  ['--metadata order=4711 --metadata note=a=b', 'a3 a2 a1'],
  ['--since 1h --status tracking', 'b2 a3 a1'],
  ['--until 1h', ''],
  ['--ended-since 1h --ended-until 2100-01-01T00:00:00Z', 'b1 a2'],
])('%s lists as JSON lines, and counts, what meets the conditions', async (options, ids) => {
  const { code, stdout } = await run(`list ${options} --json`);
  expect([code, idsIn(stdout).join(' ')]).toEqual([0, ids]);
  const count = ids.split(' ').filter(Boolean).length;
  expect((await run(`list --count ${options}`)).stdout).toBe(`${count}\n`);
});

it('reads as many pages as the limit needs, and all of them on request', async () => {
  const sizes: string[] = [];
  const { url } = await serve((request, response) => {
    const query = new URL(request.url ?? '', 'http://a').searchParams;
    sizes.push(query.get('limit') ?? '');
    const last = Number(query.get('cursor') ?? 0) + 1;
    const submissions = [{ submission_id: `s${last}` }];
    response.end(JSON.stringify({ submissions, next_cursor: last < 3 ? `${last}` : null }));
  });
  expect(idsIn((await run(`list --json --limit 2 --server ${url}`)).stdout)).toEqual(['s1', 's2']);
  const all = await run(`list --json --limit all --server ${url}`);
  expect(idsIn(all.stdout)).toEqual(['s1', 's2', 's3']);
  expect(sizes).toEqual(['2', '1', '1000', '1000', '1000']);
});

describe('refuses', () => {
  it.each([
    ['--status done', /is unknown/],
    ['--chain none', /Expected one of confirmed, contradicted, unavailable/],
    ['--metadata order', /name=value/],
    ['--metadata a=1 --metadata a=2', /given twice/],
    ['--since yesterday', /duration like 2h/],
    ['--upstream nowhere', /no upstream is named "nowhere"/],
    ['--limit 0', /at least 1/],
  ])('%s', async (options, message) => {
    const { code, stdout, stderr } = await run(`list ${options}`);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
  });
});
