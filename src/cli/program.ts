import { Command } from 'commander';
import pkg from '../../package.json' with { type: 'json' };
import { addAudit } from './audit.ts';
import { addBackup } from './backup.ts';
import { addCancel } from './cancel.ts';
import { addConfig } from './config.ts';
import { addDeliveries } from './deliveries.ts';
import { addDemo } from './demo.ts';
import { EXIT_CODE_HELP, ExitCode, explain } from './exit.ts';
import { addPacing } from './pacing.ts';
import { addSandbox } from './sandbox.ts';
import { addServe } from './serve.ts';
import { addStatus } from './status.ts';
import { addTail } from './tail.ts';
import { addToken } from './token.ts';
import { addTrack } from './track.ts';
import { addUsers } from './users.ts';
import { addWait } from './wait.ts';
import { addWebhooks } from './webhooks.ts';
import { addWorker } from './worker.ts';

const program = new Command('dawatch')
  .description('Watches data-availability submissions until they are final, keeps their history, and tells you.')
  .version(pkg.version)
  .showHelpAfterError('(--help shows how)')
  .addHelpText(
    'after',
    `\nStart with \`dawatch demo\`: it shows everything on this machine in about a minute.\n${EXIT_CODE_HELP}`,
  )
  .exitOverride((error) => process.exit(error.exitCode === 0 ? ExitCode.ok : ExitCode.usage));

for (const add of [
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
  addWebhooks,
  addDeliveries,
  addUsers,
  addAudit,
  addToken,
  addConfig,
  addBackup,
])
  add(program);

// Whoever reads may go first, as `head` does; this is how a shell shows an end by SIGPIPE.
process.stdout.on('error', () => process.exit(141));

try {
  await program.parseAsync();
} catch (error) {
  const { message, exitCode } = explain(error);
  process.stderr.write(`dawatch: ${message}\n`);
  process.exit(exitCode);
}
