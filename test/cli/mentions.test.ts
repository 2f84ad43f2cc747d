import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { beforeAll, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { unknownVariables } from '../../src/operations/config/load.ts';
import { loadConfig } from '../../src/wiring/settings.ts';

const ROOT = join(import.meta.dirname, '../..');
const filesIn = (folder: string, ending: RegExp) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name))
    .map((name) => join(folder, name));

const SOURCES = filesIn('src', /\.[jt]s$/).filter(
  (name) => !/dashboard\/page|client\/dist/.test(name),
);
const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docker-compose.yml', 'Dockerfile']
  .concat(filesIn('docs', /\.md$/), filesIn('config', /\.ya?ml$/))
  .filter((name) => !name.startsWith('docs/decisions'));

/** Options of Node, npm, Docker, Redis, git, Helm, kubectl, cosign and other programs. */
const FOREIGN = `
  appendfsync appendonly atomic cascade certificate-identity certificate-oidc-issuer cpu-prof
  trace-gc days env-file fixed default-non-nullable format from from-env-file from-literal global inspect
  max-semi-space-size maxmemory maxmemory-policy namespace no-allocation-site-pretenuring now
  import interval omit output package-lock-only platform profile project-name replicas report report-on
  requirepass retries rm save-dev scale set start-period strip-components tag values without
  write
`
  .trim()
  .split(/\s+/);
/** Words that follow the name of the program in sentences. */
const PROSE = ['watches', 'needs'];
const EVERYWHERE = ['help', 'version'];

/** The options of each command by its path, for example "webhooks create". */
const options = new Map<string, Set<string>>();

beforeAll(async () => {
  const add = (command: Command, path: string) => {
    const names = command.options.map(({ long }) => long?.slice(2) ?? '');
    options.set(path, new Set([...EVERYWHERE, ...names]));
    for (const one of command.commands) add(one, `${path} ${one.name()}`.trim());
  };
  add(await createProgram(), '');
  options.set('help', new Set(EVERYWHERE));
});

/** Returns the text of a file without comments, which users do not read. */
function textOf(file: string): string {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return /\.[jt]s$/.test(file) ? text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '') : text;
}

/**
 * Returns the commands in a text, such as "dawatch list --since 24h", split into
 * path and other words.
 */
function commandsIn(text: string): { path: string; words: string[] }[] {
  return [
    ...text.matchAll(/(?:npx |[`$] ?|main\.js )dawatch ([^`\n|&;)]*)|main\.js ([^`\n|&;)"]*)/g),
  ].map(([, a, b]) => {
    const words = (a ?? b ?? '').split(/[\s,"']+/).filter(Boolean);
    const path: string[] = [];
    while (options.has([...path, words[0]].join(' '))) path.push(words.shift() ?? '');
    return { path: path.join(' '), words };
  });
}

const optionsIn = (text: string) =>
  [...text.matchAll(/(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?![a-z]| ===)/g)].map(
    ([, name = '']) => name,
  );

it('no text names an unknown command or option', () => {
  const known = new Set([...options.values()].flatMap((names) => [...names]).concat(FOREIGN));
  const wrong: string[] = [];
  for (const file of [...SOURCES, ...PAGES]) {
    const text = textOf(file);
    for (const { path, words } of commandsIn(text)) {
      const [first = ''] = words;
      if (path === '' && /^[a-z]+$/.test(first) && !PROSE.includes(first))
        wrong.push(`${file}: dawatch ${first}`);
      for (const option of optionsIn(words.join(' ')))
        if (!options.get(path)?.has(option)) wrong.push(`${file}: dawatch ${path} --${option}`);
    }
    for (const option of optionsIn(text))
      if (!known.has(option)) wrong.push(`${file}: --${option}`);
  }
  expect(wrong).toEqual([]);
});

it('no text names an unknown variable or file', () => {
  const wrong: string[] = [];
  for (const file of [...SOURCES, ...PAGES]) {
    const text = textOf(file);
    const variables = [...text.matchAll(/\bDAWATCH_[A-Z][A-Z_]*[A-Z]\b(?!…)/g)].map(
      ([name]) => name,
    );
    wrong.push(...unknownVariables(Object.fromEntries(variables.map((name) => [name, 'set']))));
    const files = [...text.matchAll(/\b(?:docs|config)\/[\w/-]+\.(?:md|ya?ml|json)\b/g)].map(
      ([path]) => path,
    );
    wrong.push(
      ...files.filter((path) => !existsSync(join(ROOT, path))).map((path) => `${file}: ${path}`),
    );
  }
  expect(wrong).toEqual([]);
});

it('no text of the installed package names a page of docs, which it lacks', () => {
  const shown = filesIn('config', /\.\w+$/).concat(filesIn('deploy/host', /\.\w+$/));
  const texts = [
    ...SOURCES.map(textOf),
    ...shown.map((file) => readFileSync(join(ROOT, file), 'utf8')),
  ];
  expect(texts.flatMap((text) => text.match(/\bdocs\/[\w/-]+\.md\b/g) ?? [])).toEqual([]);
});

it('every text names the length of a key that the settings require', () => {
  const lengths = [...SOURCES, ...PAGES].flatMap((file) =>
    [
      ...textOf(file).matchAll(
        /(?:key|credential)[^\n]*(?:at least|less than) (\d+)\s+characters/gi,
      ),
    ].map(([, length]) => Number(length)),
  );
  expect(new Set(lengths)).toEqual(new Set([32]));
  const load = (chars: number) =>
    loadConfig({ env: { DAWATCH_SERVICE_KEY: 'x'.repeat(chars) }, file: null });
  expect(load(32).config.auth.service_key).toHaveLength(32);
  expect(() => load(31)).toThrow('at least 32 characters');
});
