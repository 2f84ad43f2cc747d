import { Command, CommanderError } from 'commander';
import { escapeLines } from '../lib/text.ts';
import { mistypedReason } from '../operations/config/schema-problems.ts';
import { VERSION } from '../operations/version.ts';
import { CommandError, EXIT_CODE_HELP, ExitCode, explain } from './exit.ts';

/** All commands in the order of the help, loaded on demand to keep the start fast. */
const COMMANDS: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  demo: async () => (await import('./demo-command.ts')).addDemo,
  serve: async () => (await import('./serve-command.ts')).addServe,
  worker: async () => (await import('../redis/worker-command.ts')).addWorker,
  sandbox: async () => (await import('./sandbox-command.ts')).addSandbox,
  track: async () => (await import('../submissions/track-command.ts')).addTrack,
  status: async () => (await import('../submissions/list-command.ts')).addStatus,
  list: async () => (await import('../submissions/list-command.ts')).addList,
  wait: async () => (await import('../submissions/wait-command.ts')).addWait,
  proof: async () => (await import('../polling/chain/proof-command.ts')).addProof,
  cancel: async () => (await import('../submissions/track-command.ts')).addCancel,
  tail: async () => (await import('../submissions/tail-command.ts')).addTail,
  webhooks: async () => (await import('../notifications/webhooks-command.ts')).addWebhooks,
  users: async () => (await import('../access/access-command.ts')).addUsers,
  token: async () => (await import('../access/access-command.ts')).addToken,
  api: async () => (await import('./api-command.ts')).addApi,
  config: async () => (await import('./config-command.ts')).addConfig,
  backup: async () => (await import('./ledger-command.ts')).addBackup,
  doctor: async () => (await import('./doctor-command.ts')).addDoctor,
  restore: async () => (await import('./ledger-command.ts')).addRestore,
};

/** Returns the code to exit with at once; undefined: process.exitCode applies. */
export async function run(args: readonly string[]): Promise<number | undefined> {
  const program = await createProgram(args[0]);
  let command = '';
  program.hook('preSubcommand', (_program, subcommand) => {
    command = subcommand.name();
  });
  program.hook('preAction', (_program, action) => refuseMistypedPaths(action));
  try {
    await useProxy();
    await program.parseAsync(args, { from: 'user' });
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    const { message, exitCode } = explain(error, command);
    process.stderr.write(`dawatch: ${escapeLines(message)}\n`);
    return exitCode;
  }
}

/** Uses the proxy of the environment for `fetch`, too. Throws a CommandError. */
async function useProxy(): Promise<void> {
  const isSet = Object.keys(process.env).some((name) => /^https?_proxy$/i.test(name));
  if (!isSet) return;
  const [{ outgoingAgent, proxyVariables }, { serviceAddressError }] = await Promise.all([
    import('../lib/http-call.ts'),
    import('../lib/addresses.ts'),
  ]);
  for (const [name, address] of proxyVariables()) {
    const problem = serviceAddressError(address, ['http', 'https']);
    if (problem !== undefined) throw new CommandError(`${name} ${problem}`, ExitCode.usage);
  }
  (await import('undici')).setGlobalDispatcher(outgoingAgent({}));
}

/** Throws a CommandError if an option or argument `<file>` is in quotes or begins with `~`. */
function refuseMistypedPaths(action: Command): void {
  const options = action.options.filter(({ flags }) => flags.includes('<file>'));
  const values = [
    ...options.map((one) => [one.flags, action.getOptionValue(one.attributeName())]),
    ...action.registeredArguments.map((one, index) => [`<${one.name()}>`, action.args[index]]),
  ].filter(([name]) => name?.includes('<file>'));
  for (const [name, value] of values) {
    const reason =
      typeof value === 'string' && mistypedReason(value, { isPath: true, isSecret: false });
    if (reason) throw new CommandError(`${name} ${reason}`, ExitCode.usage);
  }
}

/** Returns the program with the requested command, or with all for the help or an unknown name. */
export async function createProgram(requested = ''): Promise<Command> {
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
    .helpCommand(
      'help <command>',
      'Show the help of a command; `help settings` describes every setting',
    )
    .exitOverride();
  const isAlone = Object.hasOwn(COMMANDS, requested);
  for (const [name, load] of Object.entries(COMMANDS))
    if (!isAlone || name === requested) (await load())(program);
  for (const command of program.commands) command.helpCommand(false);
  return program;
}
