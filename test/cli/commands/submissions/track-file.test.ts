import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { call, detailsOf, pathOf, post } from '../../../support/app/http-calls.ts';
import { appForTest, useAppWithSandbox } from '../../../support/app/running-app.ts';
import { cli } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const app = useAppWithSandbox();
const at = () => ({ DAWATCH_URL: app.url });
const get = async (id: string, url = app.url) => detailsOf(await call(url, pathOf(id)));
const track = (input: string, args: string[] = []) =>
  cli(['track', '--file', '-', ...args], { env: at(), input });
const lines = (...all: string[]) => `${all.join('\n')}\n`;

it('tracks the objects in the lines of NDJSON; options of the command apply to lines without them', async () => {
  const input = lines(
    '\ufeff# made by hand',
    '{"submission_id":"n-1","metadata":{"order":1},"upstream":"other"}\r',
    '',
    '  {"submission_id":"n-2"}',
    '{"submission_id":"n-2"}',
  );
  const { code, stderr } = await track(input, ['--upstream', 'other', '--metadata', '{"batch":7}']);
  expect([code, stderr]).toEqual([0, 'accepted 2, already tracked 0\n']);
  expect((await get('n-1')).metadata).toEqual({ order: 1 });
  expect((await get('n-2')).metadata).toEqual({ batch: 7 });
});

describe('the list of another installation', () => {
  it('its open submissions are tracked with their options, and the others counted', async () => {
    const other = await appForTest();
    const data_hash = `0x${'a'.repeat(64)}`;
    const item = { upstream: 'other', metadata: { order: 1 }, stuck_after_s: 77, data_hash };
    const tracked_at = '2026-01-02T03:04:05.000Z';
    const submissions = ['open', 'ended'].map((submission_id) => ({
      ...{ submission_id, tracked_at },
      ...item,
    }));
    expect((await post(other.url, { submissions })).status).toBe(202);
    await call(other.url, pathOf('ended'), { method: 'DELETE' });
    const listed = await cli(['list', '--limit', 'all', '--json', '--server', other.url]);
    expect(listed.code).toBe(0);
    const args = ['track', '--file', '-', '--server', app.url];
    expect(await cli(args, { input: listed.stdout })).toMatchObject({
      code: 0,
      stderr: 'accepted 1, already tracked 0, skipped 1 cancelled\n',
    });
    expect(await get('open')).toMatchObject({ ...item, tracked_at });
    const again = await cli([...args, '--json'], { input: listed.stdout });
    const counts = { accepted: 0, already_tracked: 1, skipped_final: { cancelled: 1 } };
    expect(JSON.parse(again.stdout)).toMatchObject(counts);
    const ended = listed.stdout
      .split('\n')
      .filter((line) => line.includes('"ended"'))
      .join();
    for (const more of [[], ['--wait']])
      expect(await cli([...args, ...more], { input: ended })).toMatchObject({
        code: 0,
        stderr: 'accepted 0, already tracked 0, skipped 1 cancelled\n',
      });
  });

  it('with --retrack: submissions that can be tracked again are not skipped, and begin anew', async () => {
    const input = lines(
      '{"submission_id":"again-1","upstream":"other","status":"cancelled","tracked_at":"2026-01-02T03:04:05Z","deadline_at":"2026-01-03T03:04:05Z"}',
      ...['again-2', 'again-3'].map((id) => `{"submission_id":"${id}","status":"finalized"}`),
    );
    expect(await track(input, ['--retrack'])).toMatchObject({
      code: 0,
      stderr: 'accepted 1, already tracked 0, skipped 2 finalized\n',
    });
    const listed = input.replace('again-1', 'again-4');
    expect((await track(listed)).stderr).toBe(
      'accepted 0, already tracked 0, skipped 1 cancelled, skipped 2 finalized\n',
    );
    expect((await get('again-1')).tracked_at).not.toBe('2026-01-02T03:04:05.000Z');
  });
});

describe('tracks nothing, exits with 2 and names the line, if the file has', () => {
  const good = '{"submission_id":"good-1"}';
  const conflict = '{"submission_id":"a","metadata":{}}\n{"submission_id":"a"}\n';
  const unknown = `${good}\n{"submission_id":"a","status":"open"}\n`;
  it.each<[string, string, string]>([
    ['an invalid id', 'good-1\n\n# c\nb\u00e4d\n', 'line 4: "b\u00e4d": a submission id is'],
    ['an escape sequence', 'good-1\n\u001b[2J\n', 'line 2: "\\u001b[2J"'],
    ['ids in quotes', '"good-1"\n"good-2"\n', 'line 1: "\\"good-1\\"": a submission id has'],
    ['CSV', 'good-1,{}\n', 'line 1: "good-1,{}": a submission id has'],
    ['an id in JSON that is JSON', '{"submission_id":"{}"}\n', 'line 1: "{}": a submission id has'],
    ['text that is not JSON', `${good}\n{"submission_id":\n`, 'line 2: is not a JSON object'],
    ['a list in JSON', `[${good}]`, 'line 1: is a list in JSON'],
    ['an unknown field', `${good}\n{"submission_id":"a","x":1}\n`, 'line 2: there is no field "x"'],
    ['an unknown status', unknown, 'line 2: status: must'],
    ['an id with other options', conflict, 'line 2: a is also in line 1, with other options'],
  ])('%s', async (_, input, message) => {
    const { code, stdout, stderr } = await track(input);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('nothing was tracked');
    expect(stderr).toContain(message);
    expect((await call(app.url, pathOf('good-1'))).status).toBe(404);
  });

  it('several errors: at most ten are listed', async () => {
    const input = Array.from({ length: 30 }, (_, index) => `not good ${index}\n`).join('');
    const { stderr } = await track(input);
    expect(stderr.match(/^line \d+/gm)).toHaveLength(10);
    expect(stderr).toContain('further lines were not read');
  });

  it('a line of more than 8 MiB, of which no more is read', async () => {
    const file = join(tempFolder(), 'ids.txt');
    writeFileSync(file, 'good-1\n');
    truncateSync(file, 2 ** 40);
    const { code, stderr } = await cli(['track', '--file', file], { env: at() });
    expect([code, stderr]).toEqual([
      2,
      `dawatch: ${file} or a line of it has more than 8388608 characters\n`,
    ]);
  });

  it('bytes that are not UTF-8', async () => {
    const file = join(tempFolder(), 'ids.txt');
    writeFileSync(file, Buffer.from('\ufeffgood-1\n', 'utf16le'));
    const { code, stderr } = await cli(['track', '--file', file], { env: at() });
    expect([code, stderr]).toEqual([2, `dawatch: ${file} is not text in UTF-8\n`]);
  });
});

it('names the line that the server refuses', async () => {
  const { code, stderr } = await track(
    '{"submission_id":"good-2"}\n\n{"submission_id":"a","upstream":"moon"}\n',
  );
  expect([code, stderr]).toEqual([2, 'dawatch: line 3: upstream: no upstream is named "moon"\n']);
  expect((await call(app.url, pathOf('good-2'))).status).toBe(404);
});

it('sends large files in several requests, and reports after a failure how to continue', async () => {
  const counts: number[] = [];
  const { url } = await serve((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const { submissions } = JSON.parse(body);
      counts.push(submissions.length);
      const isRefused = counts.length === 3;
      const errors = [{ pointer: '/submissions/1/upstream', detail: 'no upstream is named "x"' }];
      const problem = { title: 'Not valid', status: 400, detail: '', errors };
      response.writeHead(isRefused ? 400 : 202, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(
          isRefused
            ? problem
            : { accepted: submissions.length, already_tracked: 0, submissions: [] },
        ),
      );
    });
  });
  const note = 'x'.repeat(3_000);
  const input = Array.from(
    { length: 2_500 },
    (_, i) => `${JSON.stringify({ submission_id: `${i}`, metadata: { note } })}\n`,
  );
  const { code, stderr } = await cli(['track', '--server', url], { input: input.join('') });
  expect(counts).toHaveLength(3);
  const done = (counts[0] ?? 0) + (counts[1] ?? 0);
  expect([code, stderr]).toEqual([
    2,
    `${done} of 2500 submissions are tracked. To continue, run the same command again: they stay unchanged\n` +
      `dawatch: line ${done + 2}: upstream: no upstream is named "x"\n`,
  ]);
});
