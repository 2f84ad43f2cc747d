import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { call, detailsOf, pathOf, post } from '../../../support/app/http-calls.ts';
import { openApp, useAppWithSandbox } from '../../../support/app/running-app.ts';
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

it.each([
  [',', '\n'],
  [';', '\r\n'],
  ['\t', '\n'],
])('tracks the rows of CSV separated by %j', async (comma, end) => {
  const name = `csv-${comma.charCodeAt(0)}`;
  const table = [
    ['submission_id', ' metadata ', 'upstream', 'stuck_after_s', 'tracked_at'],
    [`${name}-1`, '"{""note"":""a,b;c""}"', 'other', '3600', '2026-01-02T03:04:05+01:00'],
    [`"${name}-2"`, '', 'other', '', ''],
  ];
  const input = `# from a spreadsheet${end}${table.map((row) => row.join(comma)).join(end)}${end}${end}`;
  const { code, stderr } = await track(input);
  expect([code, stderr]).toEqual([0, 'accepted 2, already tracked 0\n']);
  expect(await get(`${name}-1`)).toMatchObject({
    metadata: { note: 'a,b;c' },
    tracked_at: '2026-01-02T02:04:05.000Z',
  });
  expect((await get(`${name}-2`)).metadata).toBeNull();
});

it('ignores comments and blank lines among ids', async () => {
  const { code, stderr } = await track('# ids\n\nc-1\n  # more\nc-2\nc-1\n', [
    '--upstream',
    'other',
  ]);
  expect([code, stderr]).toEqual([0, 'accepted 2, already tracked 0\n']);
});

describe('an export of another installation', () => {
  async function openOther() {
    const database = join(tempFolder(), 'other.db');
    const other = await openApp({ database });
    onTestFinished(() => other.close());
    const item = { metadata: { note: '=1;-1', order: 1 }, tracked_at: '2026-01-02T03:04:05Z' };
    const submissions = ['-open', 'cancelled'].map((id) => ({
      submission_id: `${id}-${database.length}`,
      ...item,
    }));
    expect((await post(other.url, { submissions })).status).toBe(202);
    expect((await post(other.url, { submission_id: 'finished' })).status).toBe(202);
    for (const id of [`cancelled-${database.length}`, 'finished'])
      expect((await call(other.url, pathOf(id), { method: 'DELETE' })).status).toBe(200);
    return { other, database, open: `-open-${database.length}` };
  }

  it.each(['ndjson', 'csv'])(
    'in %s: its open submissions are tracked, and the others counted',
    async (format) => {
      const { other, database, open } = await openOther();
      const exported = await cli(['export', '--format', format], {
        env: { DAWATCH_DATABASE: database },
      });
      expect(exported.code).toBe(0);
      const before = await get(open, other.url);
      const target = await openApp({ database: join(tempFolder(), 'new.db') });
      onTestFinished(() => target.close());
      const args = ['track', '--file', '-', '--server', target.url];
      const first = await cli(args, { input: exported.stdout });
      expect([first.code, first.stderr]).toEqual([
        0,
        'accepted 1, already tracked 0, skipped 2 final\n',
      ]);
      const { upstream, metadata, tracked_at } = before;
      expect(await get(open, target.url)).toMatchObject({
        upstream,
        metadata,
        tracked_at,
        status: 'tracking',
      });
      // Outages of the upstream move both deadlines.
      const movedMs =
        Date.parse((await get(open, target.url)).deadline_at) - Date.parse(before.deadline_at);
      expect(Math.abs(movedMs)).toBeLessThan(60_000);
      const again = await cli([...args, '--json'], { input: exported.stdout });
      expect(JSON.parse(again.stdout)).toMatchObject({
        accepted: 0,
        already_tracked: 1,
        not_applied: [],
        skipped_final: 2,
      });
    },
  );

  it('with --retrack: submissions that can be tracked again are not skipped, and begin anew', async () => {
    const input = lines(
      '{"submission_id":"again-1","upstream":"other","status":"cancelled","tracked_at":"2026-01-02T03:04:05Z","deadline_at":"2026-01-03T03:04:05Z"}',
      '{"submission_id":"again-2","upstream":"other","status":"finalized"}',
    );
    expect(await track(input, ['--retrack'])).toMatchObject({
      code: 0,
      stderr: 'accepted 1, already tracked 0, skipped 1 final\n',
    });
    expect(Date.parse((await get('again-1')).tracked_at)).toBeGreaterThan(Date.now() - 60_000);
  });

  it('without an open submission tracks nothing, which is no error', async () => {
    const input = '{"submission_id":"done","status":"finalized"}\n';
    expect(await track(input)).toMatchObject({
      code: 0,
      stderr: 'accepted 0, already tracked 0, skipped 1 final\n',
    });
  });

  it('reads a row of several lines', async () => {
    const input = lines(
      'submission_id,upstream,status,error,tracked_at,changed_at,deadline_at',
      'rows-1,other,failing,"two\nlines",2026-01-02T03:04:05Z,x,2026-01-03T03:04:05Z',
    );
    expect(await track(input)).toMatchObject({
      code: 0,
      stderr: 'accepted 1, already tracked 0\n',
    });
    expect((await get('rows-1')).tracked_at).toBe('2026-01-02T03:04:05.000Z');
  });
});

describe('tracks nothing, exits with 2 and names the line, if the file has', () => {
  const good = '{"submission_id":"good-1"}';
  it.each<[string, string, string]>([
    ['an invalid id', 'good-1\n\n# c\nb\u00e4d\n', 'line 4: "b\u00e4d": a submission id is'],
    ['an id with a space', 'good-1\nnot good\n', 'line 2: "not good"'],
    ['an escape sequence', 'good-1\n\u001b[2J\n', 'line 2: "\\u001b[2J"'],
    ['ids in quotes', '"good-1"\n"good-2"\n', 'line 1: has an id in quotes'],
    ['CSV without a header', 'good-1,{}\n', 'line 1: has a comma'],
    ['text that is not JSON', `${good}\n{"submission_id":\n`, 'line 2: is not a JSON object'],
    [
      'JSON over several lines',
      '{\n  "submission_id": "good-1"\n}\n',
      'line 1: is not a JSON object',
    ],
    ['a list in JSON', `[${good}]`, 'line 1: is a list in JSON'],
    ['another value in JSON', `${good}\n7\n`, 'line 2: is not a JSON object'],
    [
      'an unknown field',
      `${good}\n{"submission_id":"a","dedline":1}\n`,
      'line 2: there is no field "dedline"',
    ],
    [
      'a value of another type',
      `${good}\n{"submission_id":"a","metadata":7}\n`,
      'line 2: metadata: must be an object',
    ],
    [
      'the name __proto__',
      `${good}\n{"submission_id":"a","metadata":{"__proto__":1}}\n`,
      'line 2: metadata: metadata must',
    ],
    [
      'that name inside',
      `{"submission_id":"a","metadata":{"b":[{"__proto__":1}]}}\n`,
      'line 1: metadata: metadata must',
    ],
    [
      'that name as a field',
      `{"submission_id":"a","__proto__":1}\n`,
      'line 1: there is no field "__proto__"',
    ],
    [
      'that name as a column',
      'submission_id,__proto__\ngood-1,x\n',
      'line 2: there is no field "__proto__"',
    ],
    [
      'tracked_at in the future',
      `${good}\n{"submission_id":"a","tracked_at":"2100-01-01T00:00:00Z"}`,
      'line 2: tracked_at',
    ],
    [
      'an unknown status',
      `${good}\n{"submission_id":"a","status":"open"}\n`,
      'line 2: status: must be one of',
    ],
    [
      'an id with other options',
      `${good}\n{"submission_id":"good-1","stuck_after_s":9}\n`,
      'line 2: good-1 is also in line 1, with other options',
    ],
    [
      'too few cells',
      'submission_id,metadata\ngood-1\n',
      'line 2: has 1 cells, and the header has 2',
    ],
    ['too many cells', 'submission_id,upstream\ngood-1,other,x\n', 'line 2: has 3 cells'],
    [
      'a column twice',
      'submission_id,upstream,upstream\ngood-1,,\n',
      'line 1: has the column "upstream" twice',
    ],
    ['an unknown column', 'submission_id,order\ngood-1,7\n', 'line 2: there is no field "order"'],
    [
      'metadata that is not JSON',
      'submission_id,metadata\ngood-1,{a}\n',
      'line 2: metadata: is not valid JSON',
    ],
    [
      'metadata that is a number',
      'submission_id,metadata\ngood-1,7\n',
      'line 2: metadata: must be an object',
    ],
    [
      'metadata null',
      'submission_id,metadata\ngood-1,null\n',
      'line 2: metadata: must be an object',
    ],
    [
      'a number that is none',
      'submission_id,stuck_after_s\ngood-1,1h\n',
      'line 2: stuck_after_s: must be a number',
    ],
    [
      'a quote within a cell',
      'submission_id,upstream\ngood-1,a"b"\n',
      'line 2: has a quote within a cell',
    ],
    [
      'an open quote',
      'submission_id,upstream\ngood-1,"a\nb\n',
      'line 2: has a quote that is not closed',
    ],
    [
      'an open quote before very many lines',
      `submission_id,upstream\ngood-1,"a${'\n'.repeat(300_000)}`,
      'line 2: has a quote that is not closed',
    ],
  ])('%s', async (_, input, message) => {
    const { code, stdout, stderr } = await track(input);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('nothing was tracked');
    expect(stderr).toContain(message);
    expect((await call(app.url, pathOf('good-1'))).status).toBe(404);
  });

  it('several errors: at most ten are listed', async () => {
    const { stderr } = await track(
      Array.from({ length: 30 }, (_, index) => `not good ${index}\n`).join(''),
    );
    expect(stderr.match(/^line \d+/gm)).toHaveLength(10);
    expect(stderr).toContain('further lines were not read');
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
    { length: 3_500 },
    (_, i) => `${JSON.stringify({ submission_id: `${i}`, metadata: { note } })}\n`,
  );
  const { code, stderr } = await cli(['track', '--server', url], { input: input.join('') });
  expect(counts).toHaveLength(3);
  const done = (counts[0] ?? 0) + (counts[1] ?? 0);
  expect([code, stderr]).toEqual([
    2,
    `${done} of 3500 submissions are tracked. To continue, run the same command again: they stay unchanged\n` +
      `dawatch: line ${done + 2}: upstream: no upstream is named "x"\n`,
  ]);
});

it('keeps the metadata of --metadata within the limit of each request', async () => {
  const ids = Array.from({ length: 1_500 }, (_, index) => `m-${index}\n`).join('');
  const metadata = JSON.stringify({ note: 'x'.repeat(4_000) });
  const { code, stderr } = await track(ids, ['--upstream', 'other', '--metadata', metadata]);
  expect([code, stderr]).toEqual([0, 'accepted 1500, already tracked 0\n']);
});
