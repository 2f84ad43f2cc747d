import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const structure = readFileSync('CONTRIBUTING.md', 'utf8').split('## Structure')[1]?.split('\n## ')[0] ?? '';

it('CONTRIBUTING lists at most 15 files from POST /v1/submissions to a delivered webhook, and each exists', () => {
  const path = [...structure.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file]) => file as string);
  expect(path.at(0)).toBe('src/http/routes/submissions.ts');
  expect(path.at(-1)).toMatch(/^src\/notify\//);
  expect(path.length).toBeLessThanOrEqual(15);
  expect(path.filter((file) => !existsSync(file))).toEqual([]);
  expect(path.filter((file) => file.startsWith('src/wiring/'))).toEqual([]);
});
