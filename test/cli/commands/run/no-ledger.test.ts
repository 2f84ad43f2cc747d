import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cli } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

/** Every command that requires an existing ledger. */
const COMMANDS = ['backup copy.db', 'token create --role service --name billing'];
it.each(COMMANDS)('%s reports a missing ledger with its path and creates none', async (command) => {
  const cwd = tempFolder();
  const { code, stdout, stderr } = await cli(command.split(' '), { cwd });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(
    new RegExp(
      `^dawatch: there is no ledger at \\S*${join(cwd, 'data/dawatch.db')}: .*--config <file> or DAWATCH_DATABASE`,
    ),
  );
  expect(readdirSync(cwd)).toEqual([]);
});

/** Every command with a path, which a shell leaves as it is within `--option=~/…` or quotes. */
const WITH_PATHS = [
  ['serve', '--config=~/dawatch.yaml'],
  ['backup', '~/copy.db'],
  ['restore', '"/copy.db"'],
  ['serve', '--check-primary', '~/primary.db'],
  ['track', '--file=~/ids.txt'],
  ['status', '--file=~/ids.txt'],
];
it.each(WITH_PATHS)(
  '%s refuses a path that begins with ~ or is in quotes, and creates nothing: %s',
  async (...args) => {
    const cwd = tempFolder();
    const { code, stdout, stderr } = await cli(args, { cwd });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^dawatch: \S*.*<file> must not (?:begin with ~|be in quotes)/);
    expect(readdirSync(cwd)).toEqual([]);
  },
);
