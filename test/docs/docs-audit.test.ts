import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { AUDIT_ACTIONS } from '../../src/access/audit-store.ts';

it('docs/audit.md lists every action of the audit', () => {
  const page = readFileSync('docs/audit.md', 'utf8');
  const listed = [...page.matchAll(/`([a-z]+\.[a-z]+)`/g)].map(([, action]) => action);
  expect(Object.keys(AUDIT_ACTIONS).filter((action) => !listed.includes(action))).toEqual([]);
});
