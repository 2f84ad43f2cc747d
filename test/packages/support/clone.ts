import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { installEnv, npxCliOf } from './pack.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Copies the files of the repository, as a clone has them, into a new folder. */
export function cloneBelow(parent: string): string {
  const clone = mkdtempSync(join(parent, 'clone-'));
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const files = execFileSync('git', list, { cwd: ROOT, encoding: 'utf8' });
  for (const file of files.split('\0').filter(Boolean)) cpSync(join(ROOT, file), join(clone, file));
  return clone;
}

/**
 * Runs a script of the shell with this Node, npm and npx on its PATH. Resolves with its output, or
 * rejects if it fails.
 */
export function runInShell(
  script: string,
  {
    cwd,
    nodePath,
    npmCli,
    env = {},
  }: { cwd: string; nodePath: string; npmCli: string; env?: Record<string, string> },
): Promise<string> {
  const own = mkdtempSync(`${cwd}-`);
  const bin = join(own, 'bin');
  mkdirSync(bin);
  for (const [name, cli] of Object.entries({ npm: npmCli, npx: npxCliOf(npmCli) }))
    symlinkSync(cli, join(bin, name));
  const environment = {
    ...installEnv(`${nodePath}:${bin}:/usr/bin:/bin`),
    XDG_CACHE_HOME: own,
    NO_COLOR: '1',
    ...env,
  };
  return new Promise((resolve, reject) => {
    execFile(
      'bash',
      ['-eo', 'pipefail', '-c', script],
      { cwd, env: environment },
      (error, stdout, stderr) =>
        error
          ? reject(new Error(`${script}: ${stderr}\n${stdout}`, { cause: error }))
          : resolve(stdout),
    );
  });
}
