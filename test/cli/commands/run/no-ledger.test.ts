import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createProgram } from '../../../../src/cli/program.ts';
import { cli, cliProcess } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

/** Every command that requires an existing ledger. */
const COMMANDS = [
  'backup copy.db',
  'vacuum',
  'audit verify',
  'token create --role service --name billing',
];
/** Commands with --config that create a ledger, or only read settings. */
const NO_LEDGER_REQUIRED = ['serve', 'worker', 'config', 'doctor', 'restore', 'check-primary'];

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

it('doctor and config create no ledger either', async () => {
  const cwd = tempFolder();
  mkdirSync(join(cwd, 'data'));
  for (const args of [['doctor', '--timeout', '1s'], ['config']]) await cliProcess(args, { cwd });
  expect(readdirSync(join(cwd, 'data'))).toEqual([]);
});

it('the lists above contain every command that accepts --config', async () => {
  const program = await createProgram();
  const leaves = program.commands.flatMap((command) => [command, ...command.commands]);
  const names = leaves
    .filter(({ options }) => options.some(({ long }) => long === '--config'))
    .map((command) => [command.parent === program ? '' : command.parent?.name(), command.name()])
    .map((words) => words.join(' ').trim());
  const listed = [...COMMANDS, ...NO_LEDGER_REQUIRED];
  expect(
    names.filter((name) => !listed.some((one) => one === name || one.startsWith(`${name} `))),
  ).toEqual([]);
});
