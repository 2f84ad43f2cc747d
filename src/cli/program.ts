import { Command, CommanderError } from 'commander';
import { escapeLines } from '../domain/text.ts';
import { VERSION } from '../platform/version.ts';
import { EXIT_CODE_HELP, ExitCode, explain } from './exit.ts';

/** All commands in the order of the help, loaded on demand to keep the start fast. */
const COMMANDS: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  demo: async () => (await import('./commands/run/demo.ts')).addDemo,
  serve: async () => (await import('./commands/run/serve.ts')).addServe,
  worker: async () => (await import('./commands/run/worker.ts')).addWorker,
  sandbox: async () => (await import('./commands/run/sandbox.ts')).addSandbox,
  track: async () => (await import('./commands/submissions/track.ts')).addTrack,
  status: async () => (await import('./commands/submissions/status.ts')).addStatus,
  list: async () => (await import('./commands/submissions/list.ts')).addList,
  count: async () => (await import('./commands/submissions/list.ts')).addCount,
  lookup: async () => (await import('./commands/submissions/lookup.ts')).addLookup,
  wait: async () => (await import('./commands/submissions/wait.ts')).addWait,
  update: async () => (await import('./commands/submissions/update.ts')).addUpdateSubmissions,
  cancel: async () => (await import('./commands/submissions/cancel.ts')).addCancel,
  pacing: async () => (await import('./commands/operate/pacing.ts')).addPacing,
  tail: async () => (await import('./commands/submissions/tail.ts')).addTail,
  report: async () => (await import('./commands/operate/report.ts')).addReport,
  top: async () => (await import('./commands/operate/top.ts')).addTop,
  alerts: async () => (await import('./commands/notifications/alerts.ts')).addAlerts,
  channels: async () => (await import('./commands/notifications/channels.ts')).addChannels,
  webhooks: async () => (await import('./commands/operate/webhooks.ts')).addWebhooks,
  deliveries: async () => (await import('./commands/operate/deliveries.ts')).addDeliveries,
  users: async () => (await import('./commands/operate/users.ts')).addUsers,
  audit: async () => (await import('./commands/operate/audit.ts')).addAudit,
  token: async () => (await import('./commands/operate/token.ts')).addToken,
  reload: async () => (await import('./commands/operate/reload.ts')).addReload,
  config: async () => (await import('./commands/run/config.ts')).addConfig,
  backup: async () => (await import('./commands/operate/backup.ts')).addBackup,
  doctor: async () => (await import('./commands/run/doctor.ts')).addDoctor,
  completion: async () => (await import('./commands/run/completion.ts')).addCompletion,
  restore: async () => (await import('./commands/operate/restore.ts')).addRestore,
  'check-primary': async () => (await import('./commands/operate/check-primary.ts')).addCheckPrimary,
  vacuum: async () => (await import('./commands/operate/vacuum.ts')).addVacuum,
  export: async () => (await import('./commands/submissions/export.ts')).addExport,
};

/**
 * Runs one command. Returns the code to exit with at once, or undefined if the command completed and process.exitCode
 * applies.
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

/** Returns the program with the requested command, or with all commands for the help, an unknown name or completion. */
async function createProgram(requested = ''): Promise<Command> {
  const program = new Command('dawatch')
    .description(
      'Tracks data-availability submissions until they are final, stores their history, and sends notifications.',
    )
    .version(VERSION)
    .showHelpAfterError('(--help shows how)')
    .addHelpText(
      'after',
      `\nStart with \`dawatch demo\`: it runs the whole system on this machine for about a minute.\n${EXIT_CODE_HELP}`,
    )
    .exitOverride();
  const isAlone = Object.hasOwn(COMMANDS, requested) && requested !== 'completion';
  for (const [name, load] of Object.entries(COMMANDS)) if (!isAlone || name === requested) (await load())(program);
  return program;
}
