import { join } from 'node:path';
import pkg from '../../package.json' with { type: 'json' };
import type { Row } from '../row.ts';
import { bytesBelow } from '../support/folder-size.ts';
import { installPackage, npm, packPackages } from '../support/packages.ts';

/**
 * The packed packages, installed as a user does. docs/decisions/0011 gives the reason for each
 * dependency.
 */
export const row: Row = {
  rounds: 1,
  metrics: [
    {
      what: 'installed size of `dawatch` with dependencies',
      target: { max: 60 },
      unit: 'MiB',
      value: ({ serverMib = 0 }) => serverMib,
      context: ({ packages = 0 }) =>
        `${Object.keys(pkg.dependencies).length} direct dependencies, ${packages} packages`,
    },
    {
      what: 'time to install `dawatch`',
      unit: 's',
      value: ({ serverS = 0 }) => serverS,
      context: () => '`npm install` with a warm cache',
    },
    {
      what: 'installed size of `@dawatch/client`',
      target: { max: 200 },
      unit: 'kB',
      value: ({ clientKb = 0 }) => clientKb,
      context: () => 'ES modules and CommonJS',
    },
  ],
  async open() {
    const packed = packPackages();

    function measure(tarball: string) {
      const startedMs = performance.now();
      const { path, remove } = installPackage(tarball);
      const seconds = (performance.now() - startedMs) / 1_000;
      const bytes = bytesBelow(join(path, 'node_modules'));
      const packages = npm(path, 'ls', '--all', '--parseable').trim().split('\n').length - 1;
      remove();
      return { seconds, bytes, packages };
    }

    return {
      async round() {
        const server = measure(packed.server);
        const client = measure(packed.client);
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
