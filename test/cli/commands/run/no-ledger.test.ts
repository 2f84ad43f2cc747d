import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cli, cliProcess } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

/**
 * Every command with --config that requires an existing ledger; commands that create one or only
 * read settings are excluded below.
 */
const COMMANDS = [
  ['backup', 'copy.db'],
  ['vacuum'],
  ['export'],
  ['export', '--output', 'export.ndjson'],
  ['token', 'create', '--role', 'service', '--name', 'billing'],
  ['token', 'list'],
  ['token', 'revoke', '1'],
];
const NO_LEDGER_REQUIRED = ['serve', 'worker', 'config', 'doctor', 'restore'];

it.each(COMMANDS)(
  '%s %s reports a missing ledger with its path and creates none',
  async (...args) => {
    const cwd = tempFolder();
    const { code, stdout, stderr } = await cli(args, { cwd });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      new RegExp(
        `^dawatch: there is no ledger at \\S*${join(cwd, 'data/dawatch.db')}: .*--config <file> or DAWATCH_DATABASE`,
      ),
    );
    expect(readdirSync(cwd)).toEqual([]);
  },
);

it('doctor and config create no ledger either', async () => {
  const cwd = tempFolder();
  mkdirSync(join(cwd, 'data'));
  for (const args of [['doctor', '--timeout', '1s'], ['config']]) await cliProcess(args, { cwd });
  expect(readdirSync(join(cwd, 'data'))).toEqual([]);
});

it('the list above contains every command that accepts --config', async () => {
  const { stdout } = await cli(['completion', 'fish']);
  const offered = [...stdout.matchAll(/^.*-l config\b.*$/gm)].map(([line]) => line);
  expect(offered.length).toBeGreaterThan(0);
  const names = new Set([...COMMANDS.map(([name = '']) => name), ...NO_LEDGER_REQUIRED]);
  for (const line of offered)
    expect(
      [...names].some((name) => line.includes(name)),
      line,
    ).toBe(true);
});
