import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pkg from '../../package.json' with { type: 'json' };
import type { Row } from '../row.ts';
import { bytesBelow } from '../support/folder-size.ts';
import { temporaryFolder } from '../support/processes.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The packed packages, installed as a user does. docs/decisions/0011 gives the reason for each dependency. */
export const row: Row = {
  rounds: 3,
  metrics: [
    {
      what: 'installed size of `dawatch` with its dependencies',
      beside: '–',
      target: { max: 100 },
      unit: 'MiB',
      value: ({ serverMib = 0 }) => serverMib,
      context: ({ packages = 0 }) =>
        `${Object.keys(pkg.dependencies).length} direct production dependencies, ${packages} packages in total`,
    },
    {
      what: 'time to install `dawatch`',
      beside: '–',
      unit: 's',
      value: ({ serverS = 0 }) => serverS,
      context: () => '`npm install` into an empty folder, packages in the cache of npm from the second round',
    },
    {
      what: 'installed size of `@dawatch/client`',
      beside: '–',
      target: { max: 200 },
      unit: 'kB',
      value: ({ clientKb = 0 }) => clientKb,
      context: () => 'without dependencies, as ES modules and CommonJS',
    },
  ],
  async open() {
    const packed = temporaryFolder();
    const npm = (cwd: string, ...args: string[]) =>
      execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    npm(ROOT, 'run', 'build');
    npm(ROOT, 'pack', '--include-workspace-root', '--workspaces', '--pack-destination', packed.path);
    const tarball = (prefix: string) => join(packed.path, `${prefix}-${pkg.version}.tgz`);

    function install(file: string) {
      const folder = temporaryFolder();
      writeFileSync(join(folder.path, 'package.json'), '{}');
      const startedMs = performance.now();
      npm(folder.path, 'install', '--omit=dev', file);
      const seconds = (performance.now() - startedMs) / 1_000;
      const bytes = bytesBelow(join(folder.path, 'node_modules'));
      const packages = npm(folder.path, 'ls', '--all', '--parseable').trim().split('\n').length - 1;
      folder.remove();
      return { seconds, bytes, packages };
    }

    return {
      async round() {
        const server = install(tarball('dawatch'));
        const client = install(tarball('dawatch-client'));
        return {
          serverMib: server.bytes / 2 ** 20,
          serverS: server.seconds,
          packages: server.packages,
          clientKb: client.bytes / 1_000,
        };
      },
      async close() {
        packed.remove();
      },
    };
  },
};
