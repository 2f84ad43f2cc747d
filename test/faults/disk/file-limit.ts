import { spawnSync } from 'node:child_process';
import { expect } from 'vitest';

const PRLIMIT = 'prlimit';

export function isPrlimitMissing(): boolean {
  if (process.platform === 'linux' && spawnSync(PRLIMIT, ['--version']).status === 0) return false;
  console.warn('SKIPPED: there is no prlimit, which limits the files of a process that runs.');
  return true;
}

/** Limits the size of the files that a running process writes. */
export function limitFileSize(pid: number | undefined, bytes: number | 'unlimited'): void {
  expect(spawnSync(PRLIMIT, [`--pid=${pid}`, `--fsize=${bytes}:unlimited`]).status).toBe(0);
}
