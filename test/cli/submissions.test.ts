import { existsSync, writeFileSync } from 'node:fs';
import { constants, getPriority } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Ledger } from '../../src/wiring/ledger-stores.ts';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import { useAppWithSandbox } from '../support/app/running-app.ts';
import { cli, cliProcess, startCli } from '../support/processes/cli.ts';
import { tempFolder } from '../support/temp-folder.ts';

const app = useAppWithSandbox();
const run = (args: string[], env = {}, runs = cli) =>
  runs(args, { env: { DAWATCH_URL: app.url, ...env } });

async function finalized(): Promise<string> {
  const id = app.submit();
  await post(app.url, { submission_id: id, metadata: { order: 7 } });
  await call(app.url, `${pathOf(id)}/wait`);
  return id;
}

describe('status', () => {
  it('shows one submission with its history', async () => {
    const id = await finalized();
    const { code, stdout } = await run(['status', id], {}, cliProcess);
    expect(code).toBe(0);
    const lines = stdout.split('\n');
    expect(lines[0]).toBe(id);
    for (const fact of [/^ +status +finalized$/, /^ +block +\d+$/, /^ +metadata +\{"order":7\}$/])
      expect(lines).toContainEqual(expect.stringMatching(fact));
    expect(stdout).toMatch(/history\n.*tracking\n.*finalized {2}\(upstream: Finalized\)\n$/s);
  });

  it('shows the options before and after each change in the history', async () => {
    await post(app.url, {
      submission_id: 'changed',
      upstream: 'other',
      metadata: { order: 1 },
      stuck_after_s: 60,
    });
    for (const body of [
      { metadata: { order: 2, note: '\u001b[31m' }, stuck_after_s: 90 },
      { metadata: null },
    ])
      await call(app.url, pathOf('changed'), { method: 'PATCH', body });
    await call(app.url, pathOf('changed'), { method: 'DELETE' });
    await post(app.url, { submission_id: 'changed', upstream: 'other', retrack: true });
    const { stdout } = await run(['status', 'changed']);
    const [first, updated, removed, cancelled, retracked] =
      stdout.split('history\n')[1]?.split('\n') ?? [];
    expect(first).toMatch(/^ +\S+ {2}tracking$/);
    expect(updated).toContain(
      'tracking  stuck_after_s: 60 → 90  metadata: {"order":1} → {"order":2,"note":"',
    );
    expect(updated).not.toContain('\u001b');
    expect(removed).toMatch(/tracking {2}metadata: \{.+\} → none$/);
    expect(cancelled).toMatch(/cancelled$/);
    expect(retracked).toMatch(/tracking {2}tracked_at: \S+Z → \S+Z {2}deadline_at: \S+Z → \S+Z/);
  });

  it('prints the same JSON as the HTTP interface', async () => {
    const id = await finalized();
    const { stdout } = await run(['status', id, '--json']);
    expect(JSON.parse(stdout)).toEqual(JSON.parse((await call(app.url, pathOf(id))).text));
  });

  it('lists the newest submissions with a status', async () => {
    await post(app.url, {
      submission_ids: ['listed-1', 'listed-2', 'listed-3'],
      upstream: 'other',
    });
    for (const id of ['listed-1', 'listed-2', 'listed-3'])
      await call(app.url, pathOf(id), { method: 'DELETE' });
    const { code, stdout } = await run(['status', '--status', 'cancelled', '--limit', '2']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^cancelled {2}listed-3 {2}tracked \S+Z {2}\d+ requests?\ncancelled {2}listed-2 .*\n$/,
    );
  });

  it('exits without an error when its reader closes the pipe', async () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => `${index}-`.padEnd(128, 'x'));
    await post(app.url, { submission_ids: ids, upstream: 'other' });
    const { child, exit } = startCli(['status', '--limit', '1000'], {
      env: { DAWATCH_URL: app.url },
    });
    let output = '';
    child.stderr.on('data', (chunk) => {
      output += chunk;
    });
    child.stdout.destroy();
    expect([await exit, output]).toEqual([141, '']);
  });

  it.each([
    [
      ['never'],
      'never was never tracked here (`dawatch status` lists the newest; `dawatch track` adds one)',
    ],
    [['--limit', 'many'], 'Expected a whole number'],
    [['--status', 'done'], 'Allowed choices are tracking, pending'],
  ])('%j exits with 2', async (args, message) => {
    const { code, stdout, stderr } = await run(['status', ...args]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});

it('cancel stops submissions, and wait exits with 3', async () => {
  await post(app.url, { submission_ids: ['stop/1', 'stop/2'], upstream: 'other' });
  const cancelled = await run(['cancel', 'stop/1', 'stop/2'], {}, cliProcess);
  expect(cancelled).toEqual({
    code: 0,
    stdout: 'cancelled  stop/1\ncancelled  stop/2\n',
    stderr: '',
  });
  const waited = await run(['wait', 'stop/1', '--json', '--timeout', '60s']);
  expect(waited.code).toBe(3);
  expect(JSON.parse(waited.stdout)).toMatchObject({ submission_id: 'stop/1', status: 'cancelled' });
});

it('wait exits with 4 when the timeout expires first', async () => {
  await post(app.url, { submission_id: 'open-for-ever', upstream: 'other' });
  const { code, stdout } = await run(['wait', 'open-for-ever', '--timeout', '0s']);
  expect([code, stdout]).toEqual([4, '']);
});

it('wait reads ids from stdin, and exits with 0 once they are finalized', async () => {
  const id = await finalized();
  const { code, stdout } = await cliProcess(['wait'], {
    env: { DAWATCH_URL: app.url },
    input: `${id}\n`,
  });
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(`^finalized  ${id}  block \\d+  \\d+ requests?\n$`),
  ]);
});

describe('backup', () => {
  it('copies the ledger while the server uses it', async () => {
    const id = await finalized();
    const target = join(tempFolder(), 'copy.db');
    const { code, stdout } = await run(
      ['backup', target, '--json'],
      { DAWATCH_DATABASE: app.database },
      cliProcess,
    );
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ file: target, bytes: expect.any(Number) });
    const copy = new Ledger({ file: target, now: 0 });
    expect(copy.submissions.get(id)?.status).toBe('finalized');
    copy.close();
  });

  it('lets the server run first, like an export', { timeout: 60_000 }, async () => {
    const shown =
      'process.on("exit", () => console.error("priority", process.getBuiltinModule("os").getPriority()))';
    const env = {
      DAWATCH_DATABASE: app.database,
      NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(shown)}"`,
    };
    const before = getPriority();
    const low = Math.max(before, constants.priority.PRIORITY_BELOW_NORMAL);
    const priorityOf = async (...args: string[]) => (await run(args, env, cliProcess)).stderr;
    expect(await priorityOf('backup', join(tempFolder(), 'copy.db'))).toContain(`priority ${low}`);
    expect(await priorityOf('export')).toContain(`priority ${low}`);
    expect(await priorityOf('completion', 'bash')).toContain(`priority ${before}`);
  });

  it('leaves an existing file unchanged', async () => {
    const target = join(tempFolder(), 'precious.txt');
    writeFileSync(target, 'precious');
    const { code, stderr } = await run(['backup', target], { DAWATCH_DATABASE: app.database });
    expect([code, stderr]).toEqual([
      2,
      `dawatch: ${target} already exists and was left unchanged\n`,
    ]);
  });

  it('reports a missing ledger without creating one', async () => {
    const database = join(tempFolder(), 'nothing.db');
    const { code, stderr } = await run(['backup', `${database}.copy`], {
      DAWATCH_DATABASE: database,
    });
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`dawatch: there is no ledger at ${database}: `),
    ]);
    expect([existsSync(database), existsSync(`${database}.copy`)]).toEqual([false, false]);
  });
});
