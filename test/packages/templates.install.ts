import { execFileSync } from 'node:child_process';
import { readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cloneBelow } from './support/clone.ts';
import { removedAfterTests } from './support/folders.ts';

const ROOT = join(import.meta.dirname, '../..');
const TEMPLATES = readdirSync(join(ROOT, 'docs/templates'));

it('the templates of CONTRIBUTING apply to a clone, fit its style and types, and pass their tests', () => {
  expect(TEMPLATES).toEqual(['channel.patch', 'command.patch', 'field.patch', 'route.patch']);
  const clone = cloneBelow(removedAfterTests());
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: clone, encoding: 'utf8' });
  const bin = (program: string) => join(ROOT, 'node_modules/.bin', program);
  run('git', 'init', '--quiet');
  for (const template of TEMPLATES) run('git', 'apply', `docs/templates/${template}`);
  const added = run('git', 'ls-files', '--others', '--', 'src/**/example*', 'test/**/example*');
  const files = added.trim().split('\n');
  expect(files).toHaveLength(7);
  run(bin('tsc'), '--noEmit');
  run(bin('biome'), 'check', '--error-on-warnings', '--vcs-enabled=false', ...files);
  const tests = files.filter((file) => file.endsWith('.test.ts'));
  expect(run(bin('vitest'), 'run', '--reporter=dot', ...tests)).toContain('4 passed');
});
