import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { AUDIT_ACTIONS } from '../../src/access/audit-actions.ts';
import { ADMIN_TOKEN, openLookups, userPath } from '../support/app/lookups.ts';

const page = readFileSync('docs/audit.md', 'utf8');
const hasPython = spawnSync('python3', ['--version']).status === 0;

it('docs/audit.md lists every action of the audit', () => {
  const listed = [...page.matchAll(/`([a-z]+\.[a-z]+)`/g)].map(([, action]) => action);
  expect(Object.keys(AUDIT_ACTIONS).filter((action) => !listed.includes(action))).toEqual([]);
});

it.skipIf(!hasPython)('the program in docs/audit.md checks an export', async () => {
  const lookups = await openLookups();
  for (const email of ['ada@example.com', 'ünlaut'])
    await lookups.get(userPath({ name: 'Ä', email }), ADMIN_TOKEN);
  const program = /```python\n(.*?)```/s.exec(page)?.[1] ?? '';
  const { text } = await lookups.get('/v1/audit?format=ndjson', ADMIN_TOKEN);
  const { hash } = JSON.parse(text.trimEnd().split('\n').at(-1) ?? '');
  const check = (input: string) =>
    execFileSync('python3', ['-c', program], { input, encoding: 'utf8', stdio: 'pipe' });
  expect(check(text)).toBe(`${hash}\n`);
  expect(() =>
    check(text.replace('"result":"found"', '"result":"busy"').replace('"not_found"', '"busy"')),
  ).toThrow('AssertionError');
});
