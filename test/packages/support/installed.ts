import { type ExecFileException, execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { installEnv } from './pack.ts';

export type Run = { code: number; stdout: string; stderr: string };

/**
 * A folder in which a packed package is installed, and a PATH that has one Node and no compiler.
 */
export type Installed = ReturnType<typeof installInto>;

export function installInto(
  folder: string,
  { tarball, npmCli, nodePath }: { tarball: string; npmCli: string; nodePath: string },
) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{}');
  const node = join(nodePath, 'node');
  // npm starts install scripts with sh, which is not on the PATH either.
  const env = { ...installEnv(nodePath), npm_config_script_shell: '/bin/sh' };
  execFileSync(node, [npmCli, 'install', '--omit=dev', tarball], {
    cwd: folder,
    env,
    stdio: 'pipe',
  });

  const environment = (own: Record<string, string>) => ({
    PATH: nodePath,
    HOME: folder,
    NO_COLOR: '1',
    ...own,
  });
  return {
    folder,
    /** Runs a script to its end. */
    run(script: string, args: string[], own: Record<string, string> = {}): Promise<Run> {
      return new Promise((resolve) =>
        execFile(
          node,
          [script, ...args],
          { cwd: folder, env: environment(own) },
          (error, stdout, stderr) => resolve({ code: exitCodeOf(error), stdout, stderr }),
        ),
      );
    },
    /**
     * Starts a script that runs until the test ends. Resolves with the first match in its output.
     */
    start(
      script: string,
      args: string[],
      own: Record<string, string>,
      awaited: RegExp,
    ): Promise<RegExpExecArray> {
      const child = spawn(node, [script, ...args], { cwd: folder, env: environment(own) });
      onTestFinished(() => void child.kill('SIGKILL'));
      const lines: string[] = [];
      return new Promise((resolve, reject) => {
        for (const stream of [child.stdout, child.stderr])
          createInterface({ input: stream }).on('line', (line) => {
            lines.push(line);
            const match = awaited.exec(line);
            if (match) resolve(match);
          });
        child.on('exit', (code) =>
          reject(new Error(`${args[0]} ended with ${code}: ${lines.join('\n')}`)),
        );
      });
    },
  };
}

function exitCodeOf(error: ExecFileException | null): number {
  if (error === null) return 0;
  return typeof error.code === 'number' ? error.code : 1;
}
