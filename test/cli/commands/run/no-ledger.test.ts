import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cli } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

/** Every command that requires an existing ledger. */
const COMMANDS = [
  'backup copy.db',
  'vacuum',
  'audit verify',
  'token create --role service --name billing',
];
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
