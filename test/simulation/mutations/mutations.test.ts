import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { mutate } from './mutate.ts';
import { MUTATIONS } from './mutations.ts';

const SRC = join(import.meta.dirname, '../../../src');

it('the deliberate bugs fit the present code, each in one place', () => {
  const read = (file: string) => readFileSync(join(SRC, file), 'utf8');
  for (const mutation of MUTATIONS) expect(mutate(mutation, read)).not.toBe(read(mutation.file));
  expect(new Set(MUTATIONS.map(({ name }) => name)).size).toBe(30);
});
