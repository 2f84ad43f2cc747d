import { Command, CommanderError } from 'commander';
import pkg from '../../package.json' with { type: 'json' };
import { escapeLines } from '../domain/text.ts';
import { EXIT_CODE_HELP, ExitCode, explain } from './exit.ts';

/** In the order of the help. None is read before it is wanted: a command waits for no other one, and no start for a client. */
const COMMANDS: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  demo: async () => (await import('./commands/run/demo.ts')).addDemo,
  serve: async () => (await import('./commands/run/serve.ts')).addServe,
  worker: async () => (await import('./commands/run/worker.ts')).addWorker,
  sandbox: async () => (await import('./commands/run/sandbox.ts')).addSandbox,
  track: async () => (await import('./commands/submissions/track.ts')).addTrack,
  status: async () => (await import('./commands/submissions/status.ts')).addStatus,
  wait: async () => (await import('./commands/submissions/wait.ts')).addWait,
  cancel: async () => (await import('./commands/submissions/cancel.ts')).addCancel,
  pacing: async () => (await import('./commands/operate/pacing.ts')).addPacing,
  tail: async () => (await import('./commands/submissions/tail.ts')).addTail,
  top: async () => (await import('./commands/operate/top.ts')).addTop,
  webhooks: async () => (await import('./commands/operate/webhooks.ts')).addWebhooks,
  deliveries: async () => (await import('./commands/operate/deliveries.ts')).addDeliveries,
  users: async () => (await import('./commands/operate/users.ts')).addUsers,
  audit: async () => (await import('./commands/operate/audit.ts')).addAudit,
  token: async () => (await import('./commands/operate/token.ts')).addToken,
  config: async () => (await import('./commands/run/config.ts')).addConfig,
  backup: async () => (await import('./commands/operate/backup.ts')).addBackup,
  doctor: async () => (await import('./commands/run/doctor.ts')).addDoctor,
  completion: async () => (await import('./commands/run/completion.ts')).addCompletion,
  restore: async () => (await import('./commands/operate/restore.ts')).addRestore,
  vacuum: async () => (await import('./commands/operate/vacuum.ts')).addVacuum,
  export: async () => (await import('./commands/submissions/export.ts')).addExport,
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
    process.stderr.write(`dawatch: ${escapeLines(message)}\n`);
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
