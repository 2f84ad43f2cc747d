import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import pkg from '../../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../..');

/** What `dawatch` runs. */
export const MAIN = join(ROOT, 'src/cli/main.js');

/** What `npm start` tells Node. */
export const NODE_FLAGS = pkg.scripts.start.split(' ').filter((word) => word.startsWith('--'));

/** Where processes keep what they compiled, which halves the start of the next one. */
export const COMPILED = { NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/dawatch-cli') };

const compiled = new Set<string>();

/** For processes that are killed, and so keep nothing: without settings the command ends by itself, with all of it loaded. */
export function compile(command: 'serve' | 'worker', folder: string): void {
  if (compiled.has(command)) return;
  compiled.add(command);
  spawnSync(process.execPath, [MAIN, command], { cwd: folder, env: COMPILED });
}
