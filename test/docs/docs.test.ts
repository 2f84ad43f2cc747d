import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'].concat(
  readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
);

it.each(pages)('%s refers only to files that exist', (page) => {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, path]) =>
    join(page, '..', path ?? ''),
  );
  const tests = [...text.matchAll(/vitest run ([\w./-]+)/g)].map(([, path]) => path ?? '');
  const missing = [...links, ...tests].filter((path) => !existsSync(join(ROOT, path)));
  const faults = [...text.matchAll(/test:faults -- ([\w-]+)/g)].map(([, name]) => name ?? '');
  const known = readdirSync(join(ROOT, 'test/faults'), { recursive: true, encoding: 'utf8' }).map(
    (file) => basename(file),
  );
  const unknown = faults.filter((name) => !known.some((file) => file.startsWith(name)));
  expect([...missing, ...unknown]).toEqual([]);
});

it('docs/reliability.md names an existing test in every row with a test', () => {
  const faults = readdirSync(join(ROOT, 'test/faults'), { recursive: true, encoding: 'utf8' });
  const rows = readFileSync(join(ROOT, 'docs/reliability.md'), 'utf8').matchAll(
    /^\|.*\| `([\w./-]+)` \|$/gm,
  );
  const named = [...rows].map(([, name = '']) => name);
  expect(named.length).toBeGreaterThan(25);
  const isTest = (name: string) =>
    name.includes('/')
      ? existsSync(join(ROOT, name))
      : faults.some((file) => basename(file).startsWith(`${name}.`));
  expect(named.filter((name) => !isTest(name))).toEqual([]);
});

it('docs/interface.md names an existing test in every row', () => {
  const rows = readFileSync(join(ROOT, 'docs/interface.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| Interface'));
  expect(rows.length).toBeGreaterThan(25);
  for (const row of rows) {
    const named = [...row.matchAll(/`([\w/-]+\.test\.ts)`/g)].map(([, path]) => path ?? '');
    expect(named, row).not.toEqual([]);
    expect(
      named.filter((path) => !existsSync(join(ROOT, 'test', path))),
      row,
    ).toEqual([]);
  }
});
