import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { pathOf } from '../../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../../support/app/lookups.ts';
import { useNotifyingApp } from '../../support/app/notifying-app.ts';
import { cli } from '../../support/processes/cli.ts';
import { serve } from '../../support/servers/upstream-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const app = useNotifyingApp();
const api = (args: string[], input = '') =>
  cli(['api', ...args], {
    env: { DAWATCH_URL: app.url, DAWATCH_ADMIN_TOKEN: ADMIN_TOKEN },
    input,
  });

it('sends GET, or POST with data from the argument, a file or stdin, and prints the body', async () => {
  const posted = await api(['/v1/submissions', '--data', '{"submission_id":"from-text"}']);
  expect([posted.code, JSON.parse(posted.stdout).accepted]).toEqual([0, 1]);
  const file = join(tempFolder(), 'body.json');
  writeFileSync(file, '{"submission_id":"from-file"}');
  expect((await api(['/v1/submissions', '--data', `@${file}`])).code).toBe(0);
  const stdin = await api(['post', '/v1/submissions', '--data', '-'], '{"submission_id":"s"}');
  expect(stdin.code).toBe(0);
  for (const id of ['from-text', 'from-file', 's']) {
    const { stdout } = await api([pathOf(id)]);
    expect(JSON.parse(stdout)).toMatchObject({ submission_id: id, status: 'tracking' });
    expect(stdout.endsWith('}\n')).toBe(true);
  }
});

it('sends both credentials, of which the route uses one', async () => {
  expect((await api(['DELETE', pathOf('from-text')])).code).toBe(0);
  const { stdout } = await api(['/v1/audit?action=submissions.cancel']);
  expect(JSON.parse(stdout).entries).toMatchObject([{ subject: 'from-text' }]);
  const lines = (await api(['/v1/audit?format=ndjson'])).stdout.trimEnd().split('\n');
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ action: 'audit.export' });
});

it.each<[string[], number, RegExp]>([
  [['/v1/submissions/never'], 2, /^dawatch: Not found: never was never tracked here\n$/],
  [
    ['/v1/submissions', '--data', '{'],
    2,
    /^dawatch: The request is not valid: the body is not valid JSON/,
  ],
  [['v1/submissions'], 2, /expected a method and a path/],
  [['GET', '/v1/overview', 'more'], 2, /expected a method and a path/],
  [['GET', '/v1/overview', '--data', '{}'], 2, /a GET or HEAD request has no --data/],
  [['/v1/overview', '--data', '@/never/there.json'], 2, /cannot read \/never\/there\.json/],
  [['/v1/overview', '--server', 'http://127.0.0.1:1'], 5, /no response from/],
])('%j exits with %i', async (args, code, message) => {
  const { stderr, ...ended } = await api(args);
  expect(ended).toEqual({ code, stdout: '' });
  expect(stderr).toMatch(message);
});

it('explains a refused credential, and escapes what a terminal would interpret', async () => {
  const env = { DAWATCH_URL: app.url, DAWATCH_API_KEY: null };
  const refused = await cli(['api', '/v1/overview'], { env });
  expect([refused.code, refused.stderr]).toEqual([
    5,
    expect.stringContaining('A valid credential is required'),
  ]);
  const { url } = await serve((_, response) => response.end('{"a":"\u001b[2J"}\n'));
  const { stdout } = await cli(['api', '/x'], { env: { DAWATCH_URL: url } });
  expect(stdout).toBe('{"a":"\\u001b[2J"}\n');
});
