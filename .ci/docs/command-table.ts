import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { withPart } from './between.ts';

export const FILE = 'docs/cli.md';

/** Returns the page of the command line with a list of all commands, in the order of the help. */
export async function withCommandTable(document: string): Promise<string> {
  const rows = rowsOf(await createProgram());
  return withPart(document, 'commands', rows.join('\n'));
}

function rowsOf(program: Command, prefix = ''): string[] {
  return visibleOf(program).flatMap((command) => {
    const name = `${prefix}${command.name()}`;
    const usage = [name, ...command.registeredArguments.map(usageOf)].join(' ');
    const row = `- \`${usage}\`: ${command.description().replace(/\.$/, '')}`;
    return [row, ...rowsOf(command, `${name} `)];
  });
}

function visibleOf(program: Command): readonly Command[] {
  return program.createHelp().visibleCommands(program);
}

function usageOf(argument: Command['registeredArguments'][number]): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}
