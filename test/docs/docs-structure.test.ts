import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const structure =
  readFileSync('CONTRIBUTING.md', 'utf8')
    .split('### The way of a submission')[1]
    ?.split('<!-- way -->')[0] ?? '';

const path = [...structure.matchAll(/^\d+\. .+(?:\n {3}.+)*/gm)].map(
  ([text]) => /[\w./-]+\.ts\b/.exec(text)?.[0] ?? '',
);

it('CONTRIBUTING lists at most 15 files from POST /v1/submissions to a delivered webhook, and each exists', () => {
  expect(path.at(0)).toBe('src/submissions/submissions-routes.ts');
  expect(path.at(-1)).toBe('src/notifications/channels/webhook.ts');
  expect(path.length).toBeLessThanOrEqual(15);
  expect(path.filter((file) => !existsSync(file))).toEqual([]);
});
