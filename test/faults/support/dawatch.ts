import { spawnSync } from 'node:child_process';
import { COMPILED, MAIN } from '../../support/processes/child-process.ts';
import type { KillableServer } from '../../support/processes/killable-server.ts';

/** Runs a short command with the settings of a server: `dawatch backup …`. */
export function dawatch({ folder }: Pick<KillableServer, 'folder'>, ...args: string[]) {
  const config = ['--config', `${folder}/dawatch.yaml`];
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args, ...config], {
    encoding: 'utf8',
    env: COMPILED,
  });
  return { status, output: stdout + stderr };
}
