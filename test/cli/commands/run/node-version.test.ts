import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { COMPILED, MAIN } from '../../../support/processes/child-process.ts';

function runWith(version: string) {
  const other = `data:text/javascript,Object.defineProperty(process, 'versions', { value: { node: '${version}' } })`;
  return spawnSync(process.execPath, ['--import', other, MAIN, '--version'], {
    env: { PATH: process.env.PATH, ...COMPILED },
    encoding: 'utf8',
  });
}

it.each(['20.20.2', '22.18.0'])('Node %s prints the required version', (version) => {
  const { status, stderr } = runWith(version);
  expect([status, stderr]).toEqual([1, `dawatch needs Node 22.19 or newer, this is ${version}\n`]);
});

it.each(['22.19.0', '100.1.0'])('Node %s is accepted', (version) => {
  expect(runWith(version).stderr).not.toContain('needs Node');
});
