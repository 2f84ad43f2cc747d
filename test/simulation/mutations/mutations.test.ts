import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { changed, changesOf } from './mutate.ts';
import { MUTATIONS } from './mutations.ts';

const SRC = join(import.meta.dirname, '../../../src');

it('the deliberate bugs fit the present code, each in one place', () => {
  for (const change of MUTATIONS.flatMap(changesOf)) {
    const content = readFileSync(join(SRC, change.file), 'utf8');
    expect(changed(change, content)).not.toBe(content);
  }
  expect(new Set(MUTATIONS.map(({ name }) => name)).size).toBe(MUTATIONS.length);
});
