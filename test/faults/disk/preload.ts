import { spawnSync } from 'node:child_process';

const COMPILER = 'cc';

/** In CI, a missing compiler is a failure. */
export function isCompilerMissing(): boolean {
  if (
    process.env.CI ||
    (process.platform === 'linux' && spawnSync(COMPILER, ['--version']).status === 0)
  )
    return false;
  console.warn('SKIPPED: the test needs Linux and a C compiler.');
  return true;
}

/** Compiles a library for LD_PRELOAD. */
export function compilePreload(source: string, library: string): void {
  const args = ['-O2', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library, source, '-ldl'];
  const compiled = spawnSync(COMPILER, args, { encoding: 'utf8' });
  if (compiled.status !== 0)
    throw new Error(`${source} does not compile: ${compiled.error ?? compiled.stderr}`);
}
