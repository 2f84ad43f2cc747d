import { describe, expect, it } from 'vitest';
import { call, pathOf, post } from '../../../support/app/http-calls.ts';
import { useAppWithSandbox } from '../../../support/app/running-app.ts';
import { cli, startCli } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';

const app = useAppWithSandbox();
const run = (line: string, runs = cli, input = '') =>
  runs(line.split(' '), { env: { DAWATCH_URL: app.url }, input });

async function finalized(): Promise<string> {
  const id = app.submit();
  await post(app.url, { submission_id: id, metadata: { order: 7 } });
  await call(app.url, `${pathOf(id)}/wait`);
  return id;
}

describe('status', () => {
  it('shows one submission with its history, or prints the JSON of the HTTP interface', async () => {
    const id = await finalized();
    const { code, stdout } = await run(`status ${id}`, cli);
    expect(code).toBe(0);
    const lines = stdout.split('\n');
    expect(lines[0]).toBe(id);
    for (const fact of [/^ +status +finalized$/, /^ +block +\d+$/, /^ +metadata +\{"order":7\}$/])
      expect(lines).toContainEqual(expect.stringMatching(fact));
    expect(stdout).toMatch(/history\n.*tracking\n.*finalized {2}\(upstream: Finalized\)\n$/s);
    const json = JSON.parse((await run(`status ${id} --json`)).stdout);
    expect(json).toEqual(JSON.parse((await call(app.url, pathOf(id))).text));
  });

  it.each([
    [
      'chain',
      '2026-01-02T03:04:05.600Z, 74.6 s after tracking began, known 0.4 s later (announced by the chain)',
    ],
    [
      'estimate',
      'about 2026-01-02T03:04:05.600Z, 74.6 s after tracking began, known about 0.4 s later (estimate)',
    ],
  ])(
    'shows when it became final, after how long, and how late that was known, by %s',
    async (source, text) => {
      const known = JSON.parse((await call(app.url, pathOf(await finalized()))).text);
      const times = {
        tracked_at: '2026-01-02T03:02:51.000Z',
        finalized_at: '2026-01-02T03:04:06.000Z',
        finality_at: '2026-01-02T03:04:05.600Z',
        finality_source: source,
      };
      const server = await serve((_, response) =>
        response.end(JSON.stringify({ ...known, ...times })),
      );
      const { stdout } = await cli(['status', 'a'], { env: { DAWATCH_URL: server.url } });
      expect(stdout.split('\n')).toContain(`  became final    ${text}`);
    },
  );

  it('shows the options before and after each change in the history', async () => {
    const upstream = 'other';
    const metadata = { order: 1 };
    await post(app.url, { submission_id: 'changed', upstream, metadata, stuck_after_s: 60 });
    for (const body of [
      { metadata: { order: 2, note: '\u001b[31m' }, stuck_after_s: 90 },
      { metadata: null },
    ])
      await call(app.url, pathOf('changed'), { method: 'PATCH', body });
    const { stdout } = await run('status changed');
    const [first, updated, removed] = stdout.split('history\n')[1]?.split('\n') ?? [];
    expect(first).toMatch(/^ +\S+ {2}tracking$/);
    expect(updated).toContain(
      'tracking  stuck_after_s: 60 → 90  metadata: {"order":1} → {"order":2,"note":"',
    );
    expect(updated).not.toContain('\u001b');
    expect(removed).toMatch(/tracking {2}metadata: \{.+\} → none$/);
  });

  it('exits without an error when its reader closes the pipe', async () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => `${index}-`.padEnd(128, 'x'));
    await post(app.url, { submission_ids: ids, upstream: 'other' });
    const { child, exit } = startCli(['list', '--limit', '1000'], {
      env: { DAWATCH_URL: app.url },
    });
    let output = '';
    child.stderr.on('data', (chunk) => {
      output += chunk;
    });
    child.stdout.destroy();
    expect([await exit, output]).toEqual([141, '']);
  });

  it('exits with 2 for an unknown id', async () => {
    expect(await run('status never')).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(
        'never was never tracked here (`dawatch list` lists the newest; `dawatch track` adds one)',
      ),
    });
  });
});

it('cancel stops submissions, and wait exits with 3', async () => {
  await post(app.url, { submission_ids: ['stop/1', 'stop/2'], upstream: 'other' });
  const stdout = 'cancelled  stop/1\ncancelled  stop/2\n';
  expect(await run('cancel stop/1 stop/2', cli)).toEqual({ code: 0, stdout, stderr: '' });
  const waited = await run('wait stop/1 --json --timeout 60s');
  expect(waited.code).toBe(3);
  expect(JSON.parse(waited.stdout)).toMatchObject({ submission_id: 'stop/1', status: 'cancelled' });
});

it.each(['wait', 'track --upstream other --wait'])(
  '%s exits with 4 when the timeout expires, and says what is open, why, and when it is polled next',
  async (command) => {
    const ids = Array.from({ length: 12 }, (_, index) => `open-for-ever-${index}`);
    await post(app.url, { submission_ids: ids, upstream: 'other' });
    const { code, stdout, stderr } = await run(`${command} ${ids.join(' ')} --timeout 0s`);
    expect([code, stdout]).toEqual([4, '']);
    const lines = stderr.replace(/^accepted.*\n/, '').split('\n');
    expect(lines).toHaveLength(13);
    expect(lines[0]).toBe('dawatch: the timeout has expired; still open: 12 submissions');
    expect(lines[1]).toMatch(/^ {2}open-for-ever-0: tracking; .*next poll \S+Z$/);
    expect(lines[11]).toBe('  and 2 more');
  },
);

it('wait reads ids from stdin, and exits with 0 once they are finalized', async () => {
  const id = await finalized();
  const { code, stdout } = await run('wait', cli, `${id}\n`);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(`^finalized  ${id}  block \\d+  \\d+ requests?\n$`),
  ]);
});
