import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const structure =
  readFileSync('CONTRIBUTING.md', 'utf8')
    .split('### The way of a submission')[1]
    ?.split('<!-- way -->')[0] ?? '';

/** The steps of the path, each with its file and all files that its text names. */
const steps = [...structure.matchAll(/^\d+\. .+(?:\n {3}.+)*/gm)].map(([text]) => {
  const [file = '', ...others] = text.match(/[\w./-]+\.ts\b/g) ?? [];
  return { file, others };
});
const path = steps.map(({ file }) => file);

it('CONTRIBUTING lists at most 15 files from POST /v1/submissions to a delivered webhook, and each exists', () => {
  expect(path.at(0)).toBe('src/submissions/submissions-routes.ts');
  expect(path.at(-1)).toBe('src/notifications/channels/webhook.ts');
  expect(path.length).toBeLessThanOrEqual(15);
  expect(path.filter((file) => !existsSync(file))).toEqual([]);
});

it('CONTRIBUTING counts every file of the path as a step of its own', () => {
  expect(steps.filter(({ others }) => others.length > 0)).toEqual([]);
  expect(new Set(path).size).toBe(path.length);
});
