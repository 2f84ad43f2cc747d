import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { call, detailsOf, pathOf } from '../../../support/app/http-calls.ts';
import { API_KEY, useAppWithSandbox } from '../../../support/app/running-app.ts';
import { cli } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const app = useAppWithSandbox();
const at = () => ({ DAWATCH_URL: app.url });

it('tracks ids given as arguments, each once, with the given parameters', async () => {
  const options = '--upstream other --metadata {"order":7} --deadline 90m';
  const args = ['track', 'a/1', 'a?2', 'a/1', ...options.split(' ')];
  const stderr = 'accepted 2, already tracked 0\n';
  expect(await cli(args, { env: at() })).toEqual({ code: 0, stdout: '', stderr });
  const details = detailsOf(await call(app.url, pathOf('a/1')));
  expect(details).toMatchObject({ upstream: 'other', metadata: { order: 7 } });
  // Within minutes, because an outage can have moved the deadline by as much.
  const limitMs = Date.parse(details.deadline_at) - Date.parse(details.tracked_at);
  expect(limitMs).toBeLessThan(3 * 3_600_000);
});

it('tracks the ids in the lines of a file and prints the counts as JSON', async () => {
  const file = join(tempFolder(), 'ids.txt');
  writeFileSync(file, '\ufefff-1\r\n\r\n  f-2  \nf-3');
  const { code, stdout } = await cli(['track', '--file', file, '--server', app.url, '--json']);
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    {
      ...{ accepted: 3, already_tracked: 0, already_final: 0, retracked: 0 },
      ...{ kept_options: [], final_statuses: {}, skipped_final: {} },
    },
  ]);
  for (const id of ['f-1', 'f-2', 'f-3']) detailsOf(await call(app.url, pathOf(id)));
});

it('retries when a busy server requests it, and after no other refusal', async () => {
  const responses = [503, 429, 202];
  const { url, requests } = await serve((request, response) => {
    request.resume();
    const status = responses.shift() ?? 507;
    const problem = { title: 'Busy', status, detail: 'later' };
    response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '1' });
    response.end(
      JSON.stringify(
        status === 202 ? { accepted: 1, already_tracked: 0, submissions: [] } : problem,
      ),
    );
  });
  const tracked = await cli(['track', 'a', '--server', url]);
  expect(tracked).toEqual({ code: 0, stdout: '', stderr: 'accepted 1, already tracked 0\n' });
  expect(requests).toHaveLength(3);
  expect((await cli(['track', 'b', '--server', url])).code).toBe(5);
  expect(requests).toHaveLength(4);
});

it('waits until all submissions are final, and prints a plain line for each', async () => {
  const ids = [app.submit(), app.submit()];
  const { code, stdout, stderr } = await cli(['track', ...ids, '--wait', '--timeout', '60s'], {
    env: at(),
  });
  expect([code, stderr]).toEqual([0, 'accepted 2, already tracked 0\n']);
  const lines = stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(2);
  for (const id of ids)
    expect(lines).toContainEqual(
      expect.stringMatching(new RegExp(`^finalized  ${id}  block \\d+  \\d+ requests?$`)),
    );
});

describe('refuses with exit code 2, before anything is tracked,', () => {
  it.each<[string, string[], string, string]>([
    ['an id with a space', ['good-1', 'not good'], '', 'id 2: "not good": a submission id is'],
    ['an object in JSON', ['good-1', '{"x":1}'], '', 'id 2: "{\\"x\\":1}": a submission id has'],
    ['no ids', [], '\n\n', 'no ids were given'],
    ['metadata that is a list', ['good-1', '--metadata', '[1]'], '', 'Expected a JSON object.'],
    ['--timeout without --wait', ['good-1', '--timeout', '5s'], '', '--timeout requires --wait'],
  ])('%s', async (_, args, input, message) => {
    const { code, stdout, stderr } = await cli(['track', ...args], { env: at(), input });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect((await call(app.url, pathOf('good-1'))).status).toBe(404);
  });
});

const SECRET_URL = 'http://user:SECRET@127.0.0.1:8080';
const UNENCODED_URL = 'http://user:12?SECRET@127.0.0.1:8080';
it.each<[string, string, string | null, string]>([
  ['there is no key', '', null, 'set DAWATCH_API_KEY to the service key'],
  ['the address has no scheme', 'localhost:8080', API_KEY, 'is not an http:// or'],
  ['the address has a password', SECRET_URL, API_KEY, 'must not contain a user name or a password'],
  ['the password is not encoded', UNENCODED_URL, API_KEY, 'must not contain a user name'],
])('exits with 2 and the remedy if %s', async (_, url, key, message) => {
  const args = ['track', 'good-1', '--server', url || app.url];
  const { code, stdout, stderr } = await cli(args, { env: { DAWATCH_API_KEY: key } });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain('SECRET');
});

it('names the options that known ids keep, and none that they have or take', async () => {
  const data_hash = `0x${'a'.repeat(64)}`;
  const track = (...args: string[]) =>
    cli(['track', 'kept-1', 'kept-2', '--upstream', 'other', ...args], { env: at() });
  await track('--metadata', '{"order":1}');
  const options = ['--metadata', '{"order":1}', '--data-hash', data_hash];
  expect((await track(...options)).stderr).toBe('accepted 0, already tracked 2\n');
  expect((await track('--metadata', '{"order":2}', '--deadline', '48h', '--retrack')).stderr).toBe(
    'accepted 0, already tracked 2; kept the earlier deadline, metadata\n',
  );
  expect((await track('new', '--metadata', '{}', '--json')).stdout).toContain(
    '"kept_options":["metadata"]',
  );
  expect(detailsOf(await call(app.url, pathOf('kept-1')))).toMatchObject({
    ...{ metadata: { order: 1 }, data_hash },
  });
});

it('reports ids that had ended, exits with 3, and tracks them again with --retrack', async () => {
  const track = (...args: string[]) =>
    cli(['track', 'ended', 'open', '--upstream', 'other', ...args], { env: at() });
  await track();
  await call(app.url, pathOf('ended'), { method: 'DELETE' });
  expect(await track()).toEqual({
    code: 3,
    stdout: '',
    stderr: 'accepted 0, already tracked 1, already 1 cancelled\n',
  });
  const json = await track('--json');
  const counts = {
    ...{ accepted: 0, already_tracked: 1, already_final: 1, retracked: 0 },
    ...{ kept_options: [], final_statuses: { cancelled: 1 }, skipped_final: {} },
  };
  expect([json.code, JSON.parse(json.stdout)]).toEqual([3, counts]);
  expect(await track('--retrack')).toEqual({
    code: 0,
    stdout: '',
    stderr: 'accepted 0, already tracked 1, retracked 1\n',
  });
});
