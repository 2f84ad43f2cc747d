import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { MAIN } from '../../../support/main-file.ts';

const ANOTHER = "data:text/javascript,Object.defineProperty(process, 'versions', { value: { node: '20.20.2' } })";

it('an older Node prints the required version and how to install it', () => {
  const { status, stderr } = spawnSync(process.execPath, ['--import', ANOTHER, MAIN, '--version'], {
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/^dawatch needs Node 24 or newer, this is 20\.20\.2\. .*npm ci.*npx.*install it.*\n$/),
  ]);
});
