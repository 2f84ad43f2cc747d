import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import pkg from '../../package.json' with { type: 'json' };
import type { Row } from '../row.ts';
import { temporaryFolder } from '../support/processes.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The production installation. docs/decisions/0011 gives the reason for each dependency. */
export const row: Row = {
  rounds: 1,
  metrics: [
    {
      what: 'install size, `npm ci --omit=dev`',
      beside: '–',
      unit: 'MiB',
      value: ({ mib = 0 }) => mib,
      context: ({ packages = 0 }) =>
        `${Object.keys(pkg.dependencies).length} direct production dependencies, ${packages} packages in total`,
    },
  ],
  async open() {
    const folder = temporaryFolder();
    for (const name of ['package.json', 'package-lock.json', '.npmrc'])
      cpSync(join(ROOT, name), join(folder.path, name));
    const npm = (...args: string[]) =>
      execFileSync('npm', args, { cwd: folder.path, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    npm('ci', '--omit=dev');
    return {
      async round() {
        const kib = Number(
          execFileSync('du', ['-sk', 'node_modules'], { cwd: folder.path, encoding: 'utf8' }).split('\t')[0],
        );
        const packages = npm('ls', '--all', '--parseable', '--omit=dev').trim().split('\n').length - 1;
        return { mib: kib / 1_024, packages };
      },
      async close() {
        folder.remove();
      },
    };
  },
};
