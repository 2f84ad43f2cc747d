import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Result, Settings } from './simulate.ts';

const RESULT = 'result: ';
/**
 * A run that reports no progress for this long is a defect, too: it prints a line after each
 * virtual hour.
 */
const STALLED_MS = 5 * 60_000;

/**
 * Runs one simulation in a process of its own, because it replaces the time of its process. Never
 * rejects: a process that ends without a result, or stalls, is a defect.
 */
export function runProcess({ seed, days, without }: Settings): Promise<Result> {
  const script = join(import.meta.dirname, 'simulation-process.ts');
  // Most objects are dropped at once.
  const args = [
    '--max-semi-space-size=64',
    script,
    String(seed),
    String(days),
    [...without].join(','),
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let isStalled = false;
  const limit = setTimeout(() => {
    isStalled = true;
    child.kill('SIGKILL');
  }, STALLED_MS);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      limit.refresh();
    });
  return new Promise((resolve) => {
    child.on('close', (code, signal) => {
      clearTimeout(limit);
      const result = output.split('\n').find((line) => line.startsWith(RESULT));
      if (result !== undefined) return resolve(JSON.parse(result.slice(RESULT.length)));
      const end = isStalled
        ? `made no progress for ${STALLED_MS / 1_000} s`
        : `ended with ${signal ?? code}`;
      const defects = [`the process ${end}: ${output.slice(-1_000)}`];
      resolve({ defects, days, digest: '', counts: {}, occurrences: {}, lines: [] });
    });
  });
}

/** Returns the command that repeats a run. */
export function commandOf({ seed, days, without }: Settings): string {
  const left = without.size === 0 ? '' : ` --without ${[...without].join(',')}`;
  return `npm run simulate -- --seed ${seed} --days ${days}${left}`;
}
