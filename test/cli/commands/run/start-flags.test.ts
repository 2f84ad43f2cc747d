import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MAIN, NODE_FLAGS } from '../../../support/processes/child-process.ts';

it('npm start and the image limit the young generation of V8 to the same size', () => {
  const dockerfile = readFileSync(join(MAIN, '../../../Dockerfile'), 'utf8');
  const words = JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[];
  expect(NODE_FLAGS).toEqual(['--max-semi-space-size=16']);
  expect(words.filter((word) => word.startsWith('--'))).toEqual(NODE_FLAGS);
});
