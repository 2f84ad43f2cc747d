import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import pkg from '../../../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../../..');

/** The file that `dawatch` runs. */
export const MAIN = join(ROOT, 'src/cli/main.js');

/** The options that `npm start` passes to Node. */
export const NODE_FLAGS = pkg.scripts.start.split(' ').filter((word) => word.startsWith('--'));

/** The folder for compiled code, which halves the start time of later processes. */
export const COMPILED = { NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/dawatch-cli') };

const compiled = new Set<string>();

/**
 * Fills the compile cache for processes that are killed before they write it: without settings the
 * command loads everything and exits.
 */
export function compile(command: 'serve' | 'worker', folder: string): void {
  if (compiled.has(command)) return;
  compiled.add(command);
  spawnSync(process.execPath, [MAIN, command], { cwd: folder, env: COMPILED });
}
