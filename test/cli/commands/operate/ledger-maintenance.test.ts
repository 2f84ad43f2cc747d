import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { constants, getPriority } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Ledger, openLedger, trackRequests } from '../../../support/ledger/ledger-file.ts';
import { MAIN } from '../../../support/processes/child-process.ts';
import { cli, cliProcess } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

function openWorld() {
  const ledger = openLedger();
  ledger.track(trackRequests(2_000), 0);
  return { ledger, file: join(tempFolder(), 'copy.db'), env: { DAWATCH_DATABASE: ledger.file } };
}

describe('backup', () => {
  it('copies the ledger while a server uses it', async () => {
    const { file, env } = openWorld();
    const { code, stdout } = await cli(['backup', file, '--json'], { env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ file, bytes: expect.any(Number), submissions: 2_000 });
    const copy = new Ledger({ file, now: 0 });
    expect(copy.submissions.get('s7')?.status).toBe('tracking');
    copy.close();
  });

  it('--verify refuses a copy that the next start could not migrate, and says what was checked otherwise', async () => {
    const { ledger, file, env } = openWorld();
    const { code, stdout } = await cli(['backup', '--verify', file], { env });
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/ 2000 submissions; structure checked, restore rehearsed\n$/),
    ]);
    ledger.database.connection.pragma('user_version = 0');
    const other = `${file}.2`;
    expect(await cli(['backup', '--verify', other], { env })).toMatchObject({
      code: 5,
      stderr: 'dawatch: the copy cannot be restored: table meta already exists\n',
    });
    expect(existsSync(other)).toBe(false);
    expect((await cli(['backup', other], { env })).stdout).toMatch(/; structure checked\n$/);
  });

  it('lets the server run first', async () => {
    const { file, env } = openWorld();
    const shown =
      'process.on("exit", () => console.error("priority", process.getBuiltinModule("os").getPriority()))';
    const NODE_OPTIONS = `--import "data:text/javascript,${encodeURIComponent(shown)}"`;
    const before = getPriority();
    const low = Math.max(before, constants.priority.PRIORITY_BELOW_NORMAL);
    const priorityOf = async (...args: string[]) =>
      (await cliProcess(args, { env: { ...env, NODE_OPTIONS } })).stderr;
    expect(await priorityOf('backup', file)).toContain(`priority ${low}`);
    expect(await priorityOf('config')).toContain(`priority ${before}`);
  });

  it('leaves nothing where nothing can be written', () => {
    const { file, env } = openWorld();
    // A file may have no byte, as on a full disk.
    const limited = ['-c', `trap '' XFSZ; ulimit -f 0; exec "$@"`, 'sh', process.execPath, MAIN];
    const { status, stderr } = spawnSync('sh', [...limited, 'backup', file], {
      env: { PATH: process.env.PATH, ...env },
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([5, expect.stringContaining(file)]);
    expect(readdirSync(dirname(file))).toEqual([]);
  });

  it('leaves an existing file unchanged', async () => {
    const { file, env } = openWorld();
    writeFileSync(file, 'precious');
    const { code, stderr } = await cli(['backup', file], { env });
    expect([code, stderr]).toEqual([2, `dawatch: ${file} already exists and was left unchanged\n`]);
  });
});

it('restore requires a stopped server and prints the path of the previous ledger', async () => {
  const { ledger, file, env } = openWorld();
  expect((await cli(['backup', file], { env })).code).toBe(0);
  const refused = await cli(['restore', file], { env });
  expect(refused).toMatchObject({ code: 5, stdout: '' });
  expect(refused.stderr).toMatch(/in use by another dawatch.*stop it first/);
  ledger.close();
  const restored = await cli(['restore', file, '--json'], { env });
  expect([restored.code, restored.stderr]).toEqual([0, '']);
  const response = JSON.parse(restored.stdout);
  expect(response).toMatchObject({ file, submissions: 2_000, kept: expect.anything() });
  expect(existsSync(response.kept)).toBe(true);
});
