import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { toFile } from '../../../../src/cli/export-target.ts';
import { backupLedger } from '../../../../src/ledger/backup.ts';
import { context, observation } from '../../../support/ledger/domain.ts';
import { openLedger, trackRequests } from '../../../support/ledger/ledger-file.ts';
import { cli, startCli } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

function openWorld() {
  const ledger = openLedger();
  ledger.track(trackRequests(2_000), 0);
  ledger.record([observation('finalized', Date.now(), 's7')], context());
  return { ledger, folder: tempFolder(), env: { DAWATCH_DATABASE: ledger.file } };
}

it('restore requires a stopped server and prints the path of the previous ledger', async () => {
  const { ledger, folder, env } = openWorld();
  const file = join(folder, 'backup.db');
  await backupLedger(ledger.file, file);
  const refused = await cli(['restore', file], { env });
  expect(refused).toMatchObject({ code: 5, stdout: '' });
  expect(refused.stderr).toMatch(/in use by another dawatch.*stop it first/);
  ledger.close();
  const restored = await cli(['restore', file, '--json'], { env });
  expect([restored.code, restored.stderr]).toEqual([0, '']);
  const response = JSON.parse(restored.stdout);
  expect(response).toMatchObject({
    file,
    submissions: 2_000,
    kept: expect.stringContaining('.replaced-'),
  });
  expect(existsSync(response.kept)).toBe(true);
});

it('export writes a file that only the owner may read, with the changes since the given time', async () => {
  const { folder, env } = openWorld();
  const file = join(folder, 'export.csv');
  const args = ['export', '--since', '1h', '--format', 'csv', '--output', file];
  expect(await cli(args, { env })).toEqual({
    code: 0,
    stdout: `1 submission → ${file}\n`,
    stderr: '',
  });
  expect(readFileSync(file, 'utf8')).toMatch(/^submission_id,.*\r\ns7,default,finalized,.*\r\n$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

it('export exits without an error when its reader closes the pipe', async () => {
  const { env } = openWorld();
  const { child, exit } = startCli(['export'], { env });
  const errors: string[] = [];
  child.stderr.on('data', (text) => errors.push(String(text)));
  child.stdout.once('data', () => child.stdout.destroy());
  expect(await exit).toBe(0);
  expect(errors).toEqual([]);
});

it.each<[string[], RegExp]>([
  [['--since', '1h', '--until', '2h'], /is not before --until/],
  [['--status', 'finalized,final'], /"final" is not a status. Expected one of tracking, pending/],
])('export refuses %j', async (args, message) => {
  const { code, stdout, stderr } = await cli(['export', ...args]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(message);
});

it('an export file appears under its name once it is complete, and never replaces an existing file', async () => {
  const folder = tempFolder();
  const file = join(folder, 'export.ndjson');
  const abandoned = toFile(file);
  await abandoned.write('half');
  abandoned.abandon();
  const target = toFile(file);
  await target.write('whole\n');
  expect(existsSync(file)).toBe(false);
  target.end();
  expect(readFileSync(file, 'utf8')).toBe('whole\n');
  expect(readdirSync(folder)).toEqual(['export.ndjson']);
  expect(() => toFile(file)).toThrow(/already exists/);
  expect(() => toFile(join(folder, 'nowhere', 'export.csv'))).toThrow(
    /cannot write .*export\.csv: check that its folder exists/,
  );
});

it('an export leaves a file that was created meanwhile unchanged, and removes its own temporary file', async () => {
  const folder = tempFolder();
  const file = join(folder, 'export.ndjson');
  const target = toFile(file);
  await target.write('mine\n');
  writeFileSync(file, 'precious');
  expect(() => target.end()).toThrow(/already exists/);
  target.abandon();
  expect(readFileSync(file, 'utf8')).toBe('precious');
  expect(readdirSync(folder)).toEqual(['export.ndjson']);
  expect(() => toFile('')).toThrow(/requires a file name/);
});

it('an export yields to timers while it writes, so that a progress bar can be drawn', async () => {
  const target = toFile(join(tempFolder(), 'export.ndjson'));
  let timerFired = false;
  setImmediate(() => {
    timerFired = true;
  });
  await target.write('a');
  target.abandon();
  expect(timerFired).toBe(true);
});
