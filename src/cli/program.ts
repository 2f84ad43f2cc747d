import { Command, CommanderError } from 'commander';
import pkg from '../../package.json' with { type: 'json' };
import { addAudit } from './audit.ts';
import { addBackup } from './backup.ts';
import { addCancel } from './cancel.ts';
import { addCompletion } from './completion.ts';
import { addConfig } from './config.ts';
import { addDeliveries } from './deliveries.ts';
import { addDemo } from './demo.ts';
import { addDoctor } from './doctor.ts';
import { EXIT_CODE_HELP, ExitCode, explain } from './exit.ts';
import { addExport } from './export.ts';
import { addPacing } from './pacing.ts';
import { addRestore } from './restore.ts';
import { addSandbox } from './sandbox.ts';
import { addServe } from './serve.ts';
import { addStatus } from './status.ts';
import { addTail } from './tail.ts';
import { addToken } from './token.ts';
import { addTop } from './top.ts';
import { addTrack } from './track.ts';
import { addUsers } from './users.ts';
import { addVacuum } from './vacuum.ts';
import { addWait } from './wait.ts';
import { addWebhooks } from './webhooks.ts';
import { addWorker } from './worker.ts';

/** Each loads what only it needs when it runs: `dawatch status` waits for no server to be read. */
const COMMANDS = [
  addDemo,
  addServe,
  addWorker,
  addSandbox,
  addTrack,
  addStatus,
  addWait,
  addCancel,
  addPacing,
  addTail,
  addTop,
  addWebhooks,
  addDeliveries,
  addUsers,
  addAudit,
  addToken,
  addConfig,
  addBackup,
  addDoctor,
  addCompletion,
  addRestore,
  addVacuum,
  addExport,
];

/**
 * Runs one command. What it says goes to stdout and stderr. Gives back the code to exit with at once; undefined: it came
 * to its end, and process.exitCode says how.
 */
export async function run(args: readonly string[]): Promise<number | undefined> {
  const program = createProgram();
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
    process.stderr.write(`dawatch: ${message}\n`);
    return exitCode;
  }
}

function createProgram(): Command {
  const program = new Command('dawatch')
    .description('Watches data-availability submissions until they are final, keeps their history, and tells you.')
    .version(pkg.version)
    .showHelpAfterError('(--help shows how)')
    .addHelpText(
      'after',
      `\nStart with \`dawatch demo\`: it shows everything on this machine in about a minute.\n${EXIT_CODE_HELP}`,
    )
    .exitOverride();
  for (const add of COMMANDS) add(program);
  return program;
}
