import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pkg from '../../package.json' with { type: 'json' };
import { temporaryFolder } from './processes.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Runs npm and returns its standard output. */
export function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

/** Builds and packs the packages. Returns their files, which `remove` deletes. */
export function packPackages(): { server: string; client: string; remove: () => void } {
  const { path, remove } = temporaryFolder();
  npm(ROOT, 'run', 'build');
  npm(ROOT, 'pack', './dist', './src/client', './src/pacing', '--pack-destination', path);
  const tarball = (prefix: string) => join(path, `${prefix}-${pkg.version}.tgz`);
  return { server: tarball('dawatch'), client: tarball('dawatch-client'), remove };
}

/** Installs a packed package into an empty folder, as a user does. */
export function installPackage(tarball: string): { path: string; remove: () => void } {
  const folder = temporaryFolder();
  writeFileSync(join(folder.path, 'package.json'), '{}');
  npm(folder.path, 'install', '--omit=dev', tarball);
  return folder;
}
