import { Command, CommanderError } from 'commander';
import pkg from '../../package.json' with { type: 'json' };
import { printableLines } from '../monitor/printable.ts';
import { EXIT_CODE_HELP, ExitCode, explain } from './exit.ts';

/** In the order of the help. None is read before it is wanted: a command waits for no other one, and no start for a client. */
const COMMANDS: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  demo: async () => (await import('./demo.ts')).addDemo,
  serve: async () => (await import('./serve.ts')).addServe,
  worker: async () => (await import('./worker.ts')).addWorker,
  sandbox: async () => (await import('./sandbox.ts')).addSandbox,
  track: async () => (await import('./track.ts')).addTrack,
  status: async () => (await import('./status.ts')).addStatus,
  wait: async () => (await import('./wait.ts')).addWait,
  cancel: async () => (await import('./cancel.ts')).addCancel,
  pacing: async () => (await import('./pacing.ts')).addPacing,
  tail: async () => (await import('./tail.ts')).addTail,
  top: async () => (await import('./top.ts')).addTop,
  webhooks: async () => (await import('./webhooks.ts')).addWebhooks,
  deliveries: async () => (await import('./deliveries.ts')).addDeliveries,
  users: async () => (await import('./users.ts')).addUsers,
  audit: async () => (await import('./audit.ts')).addAudit,
  token: async () => (await import('./token.ts')).addToken,
  config: async () => (await import('./config.ts')).addConfig,
  backup: async () => (await import('./backup.ts')).addBackup,
  doctor: async () => (await import('./doctor.ts')).addDoctor,
  completion: async () => (await import('./completion.ts')).addCompletion,
  restore: async () => (await import('./restore.ts')).addRestore,
  vacuum: async () => (await import('./vacuum.ts')).addVacuum,
  export: async () => (await import('./export.ts')).addExport,
};

/**
 * Runs one command. What it says goes to stdout and stderr. Gives back the code to exit with at once; undefined: it came
 * to its end, and process.exitCode says how.
 */
export async function run(args: readonly string[]): Promise<number | undefined> {
  const program = await createProgram(args[0]);
  let command = '';
  program.hook('preSubcommand', (_program, subcommand) => {
    command = subcommand.name();
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    const { message, exitCode } = explain(error, command);
    process.stderr.write(`dawatch: ${printableLines(message)}\n`);
    return exitCode;
  }
}

/** With the command that is wanted; with all of them where it is none, or one that tells of all. */
async function createProgram(wanted = ''): Promise<Command> {
  const program = new Command('dawatch')
    .description('Watches data-availability submissions until they are final, keeps their history, and tells you.')
    .version(pkg.version)
    .showHelpAfterError('(--help shows how)')
    .addHelpText(
      'after',
      `\nStart with \`dawatch demo\`: it shows everything on this machine in about a minute.\n${EXIT_CODE_HELP}`,
    )
    .exitOverride();
  const isAlone = Object.hasOwn(COMMANDS, wanted) && wanted !== 'completion';
  for (const [name, load] of Object.entries(COMMANDS)) if (!isAlone || name === wanted) (await load())(program);
  return program;
}
