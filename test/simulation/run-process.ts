import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Result, Settings } from './simulate.ts';

const RESULT = 'result: ';
/** A run that does not end is a defect, too. */
const LIMIT_MS = 30 * 60_000;

/**
 * Runs one simulation in a process of its own, because it replaces the time of its process. `root`: the folder of the code. Never
 * rejects: a process that ends without a result is a defect.
 */
export function runProcess(
  { seed, days, without }: Settings,
  root = join(import.meta.dirname, '../..'),
): Promise<Result> {
  const script = join(root, 'test/simulation/simulation-process.ts');
  const args = [script, String(seed), String(days), [...without].join(',')];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: LIMIT_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  return new Promise((resolve) => {
    child.on('close', (code, signal) => {
      const result = output.split('\n').find((line) => line.startsWith(RESULT));
      if (result !== undefined) return resolve(JSON.parse(result.slice(RESULT.length)));
      const defects = [`the process ended with ${signal ?? code}: ${output.slice(-1_000)}`];
      resolve({ defects, days, digest: '', counts: {}, lines: [] });
    });
  });
}

/** Returns the command that repeats a run. */
export function commandOf({ seed, days, without }: Settings): string {
  const left = without.size === 0 ? '' : ` --without ${[...without].join(',')}`;
  return `npm run simulate -- --seed ${seed} --days ${days}${left}`;
}
