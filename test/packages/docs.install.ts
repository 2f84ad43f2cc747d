import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import {
  type Block,
  blocksOf,
  type Command,
  commandsOf,
  isCommands,
  PAGES,
} from '../support/documents.ts';
import { EXCEPTIONS, UNCHECKED } from '../support/unexecuted-blocks.ts';
import { removedAfterTests } from './support/folders.ts';
import { openMachine } from './support/reader.ts';

/**
 * Executes every command and checks every other block of the documents for users, in an empty
 * folder with what the page tells the reader to install.
 */

const ROOT = join(import.meta.dirname, '../..');
const { client, pacing } = inject('packages');
const folder = removedAfterTests();

const isExecuted = ({ text: command }: Command): boolean =>
  !EXCEPTIONS.some(([pattern]) => pattern.test(command));
const isUnchecked = ({ text: code }: Block): boolean =>
  UNCHECKED.some(([pattern]) => pattern.test(code));
const blocks = PAGES.flatMap(blocksOf);
const others = blocks.filter((block) => !isCommands(block) && !isUnchecked(block));
const inLanguages = (...languages: string[]) =>
  others.filter(({ language }) => languages.includes(language));
const named = (list: Block[]): [string, Block][] =>
  list.map((block) => [`${block.page}:${block.line}`, block]);

let machine: Awaited<ReturnType<typeof openMachine>>;
beforeAll(async () => {
  machine = await openMachine(folder);
});

describe.concurrent('the commands in an empty folder of', () => {
  const pages = PAGES.filter((page) =>
    blocksOf(page).filter(isCommands).flatMap(commandsOf).some(isExecuted),
  );
  it.each(pages)('%s work', (page) => machine.execute(page, isExecuted));
});

it('the programs in TypeScript and JavaScript compile with strict', async () => {
  const at = join(folder, 'typescript');
  mkdirSync(at);
  writeFileSync(join(at, 'package.json'), '{}');
  const packages = ['bullmq', 'ioredis', '@noble/hashes', '@types/node@24'];
  await machine.run('npm', ['install', client, pacing, ...packages], at);
  // What fragments find in the program of the reader.
  writeFileSync(
    join(at, 'fragments.d.mts'),
    `import type { IncomingMessage } from 'node:http';
     import type { DawatchClient } from '@dawatch/client';
     declare global { const client: DawatchClient; const request: IncomingMessage; const rawBody: string; }`,
  );
  for (const { page, line, text: code } of inLanguages('js', 'ts'))
    writeFileSync(join(at, `${page.replaceAll('/', '-')}-${line}.mts`), `${code}\nexport {};\n`);
  const files = readdirSync(at).filter((name) => name.endsWith('.mts'));
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const options =
    '--ignoreConfig --noEmit --strict --skipLibCheck --module nodenext --target es2022';
  const args = [...options.split(' '), '--types', 'node', ...files];
  expect(await machine.run(tsc, args, at)).toEqual({ code: 0, output: '' });
});

it.each(named(inLanguages('json')))('%s is JSON', (_at, { text: code }) => {
  expect(() => JSON.parse(code)).not.toThrow();
});

it.each(named(inLanguages('ini')))(
  'systemd accepts the extension of the unit of %s',
  async (_at, { text: code }) => {
    const unit = join(mkdtempSync(join(folder, 'unit-')), 'dawatch.service');
    const installed = (text: string) =>
      text.replaceAll(/=(?:dawatch|\/usr\/bin\/litestream) /g, '=/bin/true ');
    mkdirSync(`${unit}.d`);
    writeFileSync(unit, installed(readFileSync(join(ROOT, 'deploy/host/dawatch.service'), 'utf8')));
    writeFileSync(join(`${unit}.d`, 'failover.conf'), installed(code));
    expect(await machine.run('systemd-analyze', ['verify', unit], folder)).toEqual({
      code: 0,
      output: '',
    });
  },
);

it('docker-compose.yml has the schema of Compose', async () => {
  const args = ['exec', '--yes', 'dclint@3.1.0', '--', '--quiet', join(ROOT, 'docker-compose.yml')];
  expect(await machine.run('npm', args, folder)).toMatchObject({ code: 0 });
});

const yaml = named(inLanguages('yaml'));
const settings = yaml.filter(
  ([, { page, text: code }]) => !/kubernetes/.test(page) && !/^dbs:/.test(code),
);

it.each(settings)('dawatch accepts the settings of %s', async (_at, { text: code }) => {
  const at = mkdtempSync(join(folder, 'settings-'));
  const file = join(at, 'dawatch.yaml');
  writeFileSync(join(at, 'secret'), 'a-secret');
  writeFileSync(
    file,
    code.replaceAll(/_file: \/run\/secrets\/\S+/g, `_file: ${join(at, 'secret')}`),
  );
  const { code: status, output } = await machine.run(
    'dawatch',
    ['config', '--config', file],
    folder,
  );
  expect(status, output).toBe(0);
});

it.each(yaml.filter(([, { text: code }]) => /^dbs:/.test(code)))(
  'Litestream 0.3 accepts %s',
  async (_at, { text: code }) => {
    const file = join(mkdtempSync(join(folder, 'litestream-')), 'litestream.yml');
    writeFileSync(file, code);
    const litestream = `node_modules/@flydotio/litestream-${process.platform}-${process.arch}/litestream`;
    const { code: status, output } = await machine.run(
      join(ROOT, litestream),
      ['databases', '-config', file],
      folder,
    );
    expect(status, output).toBe(0);
    expect(output).toContain('/var/lib/dawatch/dawatch.db');
  },
);
