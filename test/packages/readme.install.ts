import { mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { cloneBelow, runInShell } from './support/clone.ts';
import { removedAfterTests } from './support/folders.ts';
import { CLIENT_NODE, SERVER_NODE } from './support/pack.ts';

const { server: tarball, npmCli, nodes } = inject('packages');
const folder = removedAfterTests();
const ROOT = join(import.meta.dirname, '../..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

/** The commands of the README's section for a trial, in order. */
const COMMANDS = [
  ...(/## Try it\n([\s\S]*?)\n## /.exec(README)?.[1]?.matchAll(/^\$ ([^#\n]+)/gm) ?? []),
].map(([, command]) => command?.trim() ?? '');
const FEWER = '--submissions 5';

it('the README begins with the commands for users, then with those for a clone', () => {
  expect(README.indexOf('## ')).toBe(README.indexOf('## Try it'));
  expect(COMMANDS).toEqual([
    'npx dawatch demo',
    'docker run --rm ghcr.io/OWNER/dawatch dawatch demo',
    'npm ci && npm run demo',
  ]);
});

it('the first command runs the demo of the package', async () => {
  const cwd = mkdtempSync(join(folder, 'npx-'));
  const command = COMMANDS[0]?.replace('npx dawatch', `npx --yes --package ${tarball} dawatch`);
  const nodePath = nodes[SERVER_NODE] as string;
  expect(await runInShell(`${command} ${FEWER}`, { cwd, nodePath, npmCli })).toContain(
    '5, all finalized',
  );
});

// The clone brings its own Node there.
it.runIf(process.platform === 'linux')(
  'the last command runs the demo in a clone, with any Node',
  async () => {
    const cwd = cloneBelow(folder);
    // `.ci/run` executes the other half of the command.
    symlinkSync(join(ROOT, 'node_modules'), join(cwd, 'node_modules'));
    const command = `${COMMANDS.at(-1)?.replace('npm ci && ', '')} -- ${FEWER}`;
    const nodePath = nodes[CLIENT_NODE] as string;
    const output = await runInShell(command, { cwd, nodePath, npmCli });
    expect(output).toContain('5, all finalized');
    expect(output).toContain('with a node');
  },
);
