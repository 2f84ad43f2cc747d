import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import pkg from '../../package.json' with { type: 'json' };
import { MAIN } from '../support/main-file.ts';

it('every way to start a server bounds what the engine sets aside for young objects, and all alike', () => {
  const dockerfile = readFileSync(join(MAIN, '../../../Dockerfile'), 'utf8');
  const [firstLine = ''] = readFileSync(MAIN, 'utf8').split('\n');
  const startLine = dockerfile.split('\n').find((line) => line.startsWith('CMD')) ?? '';
  for (const start of [firstLine, pkg.scripts.start, startLine]) expect(start).toContain('--max-semi-space-size=16');
});

it('the file of the command runs by itself', () => {
  expect(execFileSync(MAIN, ['--version'], { encoding: 'utf8' })).toBe(`${pkg.version}\n`);
});
