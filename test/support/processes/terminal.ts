import { spawn, spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { API_KEY } from '../app/running-app.ts';
import { COMPILED, MAIN } from './child-process.ts';

/** Part of util-linux, which not every machine has. */
export const isScriptMissing = () => spawnSync('script', ['--version']).status !== 0;

/**
 * Runs a command with a pseudo-terminal; returns its output when it ends or `limitMs` have passed.
 */
export async function inTerminal(
  args: readonly string[],
  { env = {}, limitMs }: { env?: Record<string, string>; limitMs?: number } = {},
): Promise<string> {
  const quoted = [process.execPath, MAIN, ...args]
    .map((arg) => `'${arg.replaceAll("'", "'\\''")}'`)
    .join(' ');
  const child = spawn('script', ['--quiet', '--return', '--command', quoted, '/dev/null'], {
    cwd: tmpdir(),
    env: {
      PATH: process.env.PATH ?? '',
      TERM: 'xterm-256color',
      DAWATCH_API_KEY: API_KEY,
      ...COMPILED,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: limitMs,
  });
  return text(child.stdout);
}
