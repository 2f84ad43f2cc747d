import { get } from 'node:http';
import type { Command } from 'commander';
import { escapeText } from '../lib/text.ts';
import { ConfigError } from '../operations/config/load.ts';
import { type Finding, type Level, problem, worstLevel } from '../operations/doctor/finding.ts';
import type { DoctorOptions } from '../wiring/doctor.ts';
import { type LoadedConfig, loadConfig } from '../wiring/settings.ts';
import { CommandError, ExitCode } from './exit.ts';
import { parseDuration } from './input.ts';
import { type Paint, paintFor, toJson } from './output.ts';
import { listeningAddress, withSettings } from './settings-file.ts';

const COLOURS = { ok: 'green', warning: 'yellow', problem: 'red' } as const satisfies Record<
  Level,
  string
>;
const MAX_CHARS = 1_000;

export function doctorText(findings: readonly Finding[], paint: Paint): string {
  const width = Math.max(0, ...findings.map(({ name }) => name.length));
  const indent = ' '.repeat('problem  '.length + width + 2);
  const lines = findings.flatMap(({ name, status, message, action }) => [
    `${paint(COLOURS[status], status.padEnd(7))}  ${name.padEnd(width)}  ${escapeText(message, MAX_CHARS)}`,
    ...(action === null
      ? []
      : [`${indent}${paint('bold', 'do:')} ${escapeText(action, MAX_CHARS)}`]),
  ]);
  return `${[...lines, '', summaryOf(findings, paint)].join('\n')}\n`;
}

function summaryOf(findings: readonly Finding[], paint: Paint): string {
  const worst = worstLevel(findings);
  const count = (level: Level) => findings.filter(({ status }) => status === level).length;
  const counted = (level: Level) => `${count(level)} ${level}${count(level) === 1 ? '' : 's'}`;
  if (worst === 'ok') return paint(COLOURS.ok, 'no problems found');
  return paint(COLOURS[worst], `${counted('problem')}, ${counted('warning')}`);
}

type Options = {
  config?: string;
  full?: boolean;
  ready?: boolean;
  timeout?: number;
  json?: boolean;
};

const TIMEOUT_MS = 10_000;
const EXIT_CODES: Record<Level, number> = { ok: 0, warning: 1, problem: 2 };

export function addDoctor(program: Command): void {
  withSettings(program.command('doctor'))
    .description('Show why a server with these settings does not work, and the solution.')
    .option('--full', 'also read all of the ledger, which can take long')
    .option(
      '--ready',
      'health check: exit with 0 if the server with these settings is ready, otherwise with 5',
    )
    .option(
      '--timeout <duration>',
      'time limit of a connection attempt or a response (default: 10s)',
      parseDuration,
    )
    .option('--json', 'print JSON: {status, checks: [{name, status, message, action}]}')
    .addHelpText(
      'after',
      `
Example:
  dawatch doctor --json | jq -r '.checks[] | select(.status != "ok") | .action'

Run it on the host of the server, whether the server runs or not. It polls each upstream once for an id that does not exist,
gets the first page of each receiver's host, sends a heartbeat, and writes a key to Redis that expires. It changes nothing else.

Exit codes of this command: 0 no problems, 1 warnings, 2 problems.`,
    )
    .action(async (options: Options) => {
      if (options.ready) return checkReady(options);
      const findings = await check(options);
      const text = options.json
        ? `${toJson({ status: worstLevel(findings), checks: findings }, 2)}\n`
        : doctorText(findings, paintFor(process.stdout));
      process.stdout.write(text);
      process.exitCode = EXIT_CODES[worstLevel(findings)];
    });
}

/** Throws a CommandError unless the server accepts submissions. */
async function checkReady({ config: file, timeout: limitMs = TIMEOUT_MS }: Options): Promise<void> {
  const { config } = loadConfig({ env: process.env, file, user: 'none' });
  const url = `${listeningAddress(config)}/readyz`;
  const status = await new Promise<number | undefined>((resolve) => {
    // Not `fetch`, which uses the proxy of the environment.
    get(url, { agent: false, signal: AbortSignal.timeout(limitMs) }, (response) =>
      resolve(response.resume().statusCode),
    ).on('error', () => resolve(undefined));
  });
  if (status === 200) return;
  const what = status === undefined ? 'no response from' : `status ${status} from`;
  throw new CommandError(`the server is not ready: ${what} ${url}`, ExitCode.server);
}

async function check({
  config: file,
  full = false,
  timeout: limitMs = TIMEOUT_MS,
}: Options): Promise<Finding[]> {
  // Loaded on demand, because it would slow down the start of every command.
  const { runDoctor } = await import('../wiring/doctor.ts');
  const features: DoctorOptions['features'][number][] = [];
  features.push((await import('../alerts/heartbeat.ts')).heartbeatCheck);
  features.push((await import('../redis/doctor-redis.ts')).redisCheck);
  let loaded: LoadedConfig;
  try {
    loaded = loadConfig({ env: process.env, file });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const action = 'fix the setting; `dawatch config` shows every setting and its source';
    return error.problems.map((text) => problem('settings', text, action));
  }
  return await runDoctor({ loaded, now: Date.now(), full, limitMs, features });
}
