import type { Command } from 'commander';
import { ConfigError, type LoadedConfig, loadConfig } from '../../../config/load.ts';
import { type Finding, type Level, problem, worstLevel } from '../../../doctor/finding.ts';
import { durationOption } from '../../input/duration.ts';
import { paintFor } from '../../output/colors.ts';
import { doctorJson, doctorText } from '../../output/doctor-report.ts';
import { createWaitIndicator } from '../../output/wait-indicator.ts';

type Options = { config?: string; full?: boolean; timeout: number; json?: boolean };

const EXIT_CODES: Record<Level, number> = { ok: 0, warning: 1, problem: 2 };

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description(
      'Look at everything a server with these settings needs, say what is wrong and what to do. Changes nothing.',
    )
    .option('--config <file>', 'settings file [DAWATCH_CONFIG] (default: config/dawatch.yaml, if there is one)')
    .option('--full', "read the ledger's indexes too, however long that takes")
    .addOption(
      durationOption('--timeout', 'wait no longer for a connection, or for an answer', {
        least: '100ms',
        most: '10m',
        fallback: '10s',
      }),
    )
    .option('--json', 'print JSON: {status, checks: [{name, status, message, action}]}')
    .addHelpText(
      'after',
      `
Example:
  dawatch doctor --json | jq -r '.checks[] | select(.status != "ok") | .action'

It runs where the server's settings are, whether the server runs or not. Each upstream is asked about one submission that
nobody has; receivers are connected to, and sent nothing.

Exit codes of this command: 0 all is well, 1 warnings, 2 problems.`,
    )
    .action(async (options: Options) => {
      const findings = await examined(options);
      const text = options.json ? doctorJson(findings) : doctorText(findings, paintFor(process.stdout));
      // What was given up may still hold the process, as a nameserver that is silent.
      process.stdout.write(text, () => process.exit(EXIT_CODES[worstLevel(findings)]));
    });
}

async function examined({ config: file, full = false, timeout: limitMs }: Options): Promise<Finding[]> {
  const { env } = process;
  // Everything it looks at would make the start of every command slower.
  const [{ runDoctor }, { checkMachine }] = await Promise.all([
    import('../../../doctor/run-doctor.ts'),
    import('../../../doctor/machine.ts'),
  ]);
  let loaded: LoadedConfig;
  try {
    loaded = loadConfig({ env, file });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const action = 'mend it; dawatch config shows every setting and where its value comes from';
    return [...checkMachine(), ...error.problems.map((text) => problem('settings', text, action))];
  }
  const waiting = createWaitIndicator(process.stderr);
  try {
    return await runDoctor({
      loaded,
      env,
      now: Date.now(),
      full,
      limitMs,
      onBegin: (names) => waiting.begin(names),
      onEnded: (name) => waiting.end(name),
    });
  } finally {
    waiting.stop();
  }
}
