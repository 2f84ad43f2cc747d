import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Argument, Command, Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { COMPLETION_SCRIPTS, completionRules } from '../../../../src/cli/completion-command.ts';
import { cli } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const isMissing = (shell: string) => spawnSync(shell, ['--version']).status !== 0;

/** A program with every kind of command, option and argument that completion supports. */
function program(): Command {
  const root = new Command('dawatch').version('1');
  const hooks = root.command('hooks').description("Somebody's hooks: of all kinds.");
  hooks
    .command('create')
    .description('Make one.')
    .argument('<url>', 'where')
    .option('--no-filter', 'without');
  root
    .command('show')
    .description('Show [some] `things`, $HOME too.')
    .addOption(new Option('-k, --kind <kind>', 'which').choices(['final', 'first', 'last']))
    .option('--from <file>', 'read from')
    .option('--for <duration>', 'so long');
  root.command('copy').argument('<file>', 'to where');
  root.command('script').addArgument(new Argument('<shell>', 'which').choices(['bash', 'fish']));
  return root;
}

/** Command lines up to the cursor, and the completions offered there. */
const CASES: [line: string, offered: string[]][] = [
  ['dawatch s', ['show', 'script']],
  ['dawatch hooks cr', ['create']],
  ['dawatch hooks create --n', ['--no-filter']],
  ['dawatch show --kind fi', ['final', 'first']],
  ['dawatch show -k la', ['last']],
  ['dawatch show --fo', ['--for']],
  ['dawatch show --for ', []],
  ['dawatch script ba', ['bash']],
];

/** Returns COMPREPLY of bash for a line with the cursor at its end. */
function completedByBash(script: string, line: string, cwd: string): string[] {
  const words = line.replace('=', ' = ').split(' ');
  const bashScript = `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dawatch; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync('bash', ['-c', `${script}\n${bashScript}`, 'bash', ...words], {
    encoding: 'utf8',
    cwd,
  });
  return output.split('\n').filter((word) => word !== '');
}

describe('bash', () => {
  const script = COMPLETION_SCRIPTS.bash(completionRules(program()));
  const folder = () => {
    const cwd = tempFolder();
    for (const name of ['ids one.txt', 'ids two.txt', 'other']) writeFileSync(join(cwd, name), '');
    return cwd;
  };

  it.each([
    ...CASES,
    ['dawatch show --kind=fi', ['final', 'first']],
    ['dawatch show --kind=', ['final', 'first', 'last']],
  ] as const)('completes %j', (line, offered) => {
    expect(completedByBash(script, line, tempFolder())).toEqual(offered);
  });

  it.each(['dawatch show --from ids', 'dawatch copy ids'])(
    'completes file names with spaces: %s',
    (line) => {
      expect(completedByBash(script, line, folder()).sort()).toEqual([
        'ids one.txt',
        'ids two.txt',
      ]);
    },
  );

  it('does not treat a file name as a pattern', () => {
    const cwd = folder();
    writeFileSync(join(cwd, '[oi]*'), '');
    expect(completedByBash(script, 'dawatch copy ', cwd).sort()).toEqual([
      '[oi]*',
      'ids one.txt',
      'ids two.txt',
      'other',
    ]);
  });

  it('completes the program itself', async () => {
    const { code, stdout } = await cli(['completion', 'bash']);
    expect(code).toBe(0);
    expect(completedByBash(stdout, 'dawatch do', tempFolder())).toEqual(['doctor']);
    expect(completedByBash(stdout, 'dawatch status --status fin', tempFolder())).toEqual([
      'finalized',
    ]);
    expect(completedByBash(stdout, 'dawatch completion f', tempFolder())).toEqual(['fish']);
  });
});

describe.skipIf(isMissing('fish'))('fish', () => {
  it.each(CASES)('completes %j', (line, offered) => {
    const file = join(tempFolder(), 'dawatch.fish');
    writeFileSync(file, COMPLETION_SCRIPTS.fish(completionRules(program())));
    const script = `source ${file}; complete -C '${line}'`;
    const output = execFileSync('fish', ['--no-config', '-c', script], { encoding: 'utf8' });
    const words = output.split('\n').flatMap((line) => line.split('\t')[0] || []);
    expect(words.sort()).toEqual([...offered].sort());
  });
});

describe('zsh', () => {
  const script = COMPLETION_SCRIPTS.zsh(completionRules(program()));

  it('offers every command and option with its description', () => {
    for (const part of [
      `'create:Make one'`,
      `'hooks:Somebody'"'"'s hooks'`,
      `'--kind:which'`,
      `compadd -- 'final' 'first' 'last'`,
    ])
      expect(script).toContain(part);
  });

  it.skipIf(isMissing('zsh'))('parses without an error', () => {
    expect(spawnSync('zsh', ['-n', '-c', script]).status).toBe(0);
  });
});
