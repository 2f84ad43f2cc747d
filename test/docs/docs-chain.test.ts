import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/server.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { blocksOf, commandsOf, storeExample } from '../support/documents.ts';
import { cli } from '../support/processes/cli.ts';

const PAGE = 'docs/chain.md';
/** In this repository, so that its packages are found. */
const CACHE = join(import.meta.dirname, '../../node_modules/.cache');
/** That of Debian, which finds Debian's packages. */
const PYTHON = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';
const data = Buffer.from('the data of docs/chain.md');

let folder: string;
let inFolder: (name: string) => string;
let closing: (() => Promise<unknown>)[] = [];
const run = (line: string, url = 'http://127.0.0.1:1') =>
  cli(line.split(' '), { cwd: folder, env: { DAWATCH_URL: url, DAWATCH_API_KEY: API_KEY } });
/** The commands of the page that get and verify a proof. */
const [getting = '', verifying = ''] = blocksOf(PAGE)
  .flatMap(commandsOf)
  .map(({ text }) => text.replace('npx dawatch ', ''))
  .filter((text) => text.startsWith('proof '));

let url: string;
let id: string;
beforeAll(async () => {
  mkdirSync(CACHE, { recursive: true });
  folder = mkdtempSync(join(CACHE, 'chain-'));
  inFolder = (name) => join(folder, name);
  writeFileSync(inFolder('blob.bin'), data);
  const sandbox = await startSandbox({ options: { speed: 200 } });
  const app = await openApp({
    database: inFolder('ledger.db'),
    upstreamUrl: sandbox.url,
    upstream: {
      chain: { urls: [sandbox.url.replace('http', 'ws')], verify: 'require', verify_data: true },
    },
  });
  closing = [() => app.close(), () => sandbox.close()];
  url = app.url;
  id = sandbox.model.submit(data, Date.now());
  expect((await run(`track --wait ${id}`, url)).code).toBe(0);
});
afterAll(async () => {
  for (const close of closing) await close();
  rmSync(folder, { recursive: true });
});

it('`status` says where the data are, and `proof` stores the proof once', async () => {
  const { stdout } = await run(`status ${id}`, url);
  expect(stdout).toMatch(/proof +the data are in block \d+, data root 0x[0-9a-f]{64}\n/);
  const get = getting.replace('6df2c1ce-b11a-4828-b2a6-62bf5b7cb325', id);
  expect(await run(get, url)).toMatchObject({ code: 0, stdout: '' });
  expect(await run(`proof ${id.toUpperCase()}`, url)).toMatchObject({
    code: 0,
    stdout: readFileSync(inFolder('proof.json'), 'utf8'),
  });
  expect(await run(get, url)).toMatchObject({ code: 2 });
});

it('the commands and both programs of docs/chain.md accept the proof, and no other data', async () => {
  writeFileSync(inFolder('proof.json'), (await run(`proof ${id}`, url)).stdout);
  writeFileSync(inFolder('other.bin'), 'other data');
  const verified = await run(verifying);
  expect(verified).toMatchObject({ code: 0, stderr: '' });
  const { block_hash } = JSON.parse(readFileSync(inFolder('proof.json'), 'utf8'));
  expect(verified.stdout).toMatch(
    new RegExp(`^valid, if the chain has this block: \\d+ ${block_hash}, data root 0x\\S+\n$`),
  );
  expect(await run('proof --verify proof.json --data other.bin')).toMatchObject({
    code: 3,
    stderr: 'dawatch: the proof is invalid: the data are not those of the leaf\n',
  });
  for (const [program, name] of [
    [process.execPath, 'root.mjs'],
    [PYTHON, 'root.py'],
  ] as const) {
    const example = storeExample(PAGE, name, folder);
    const says = (file: string) =>
      execFileSync(program, [example, inFolder('proof.json'), inFolder(file)], {
        encoding: 'utf8',
      });
    expect([says('blob.bin'), says('other.bin')]).toEqual([
      `in the block with the hash ${block_hash}\n`,
      'not in the block\n',
    ]);
  }
});

it('the example of docs/client.md gets and verifies the proof', () => {
  const example = storeExample('docs/client.md', 'verify-proof.mjs', folder);
  const code = readFileSync(example, 'utf8')
    .replace('6df2c1ce-b11a-4828-b2a6-62bf5b7cb325', id)
    .replace('http://127.0.0.1:8080', url)
    .replaceAll(/'(@dawatch\/client)(\/proof)?'/g, (_, _name, part = '/index') => {
      return JSON.stringify(join(import.meta.dirname, `../../src/client${part}.ts`));
    });
  writeFileSync(example, code);
  const env = { DAWATCH_API_KEY: API_KEY };
  const { promise, resolve } = Promise.withResolvers<string>();
  execFile(process.execPath, [example], { cwd: folder, env }, (_error, stdout, stderr) =>
    resolve(stdout + stderr),
  );
  return expect(promise).resolves.toMatch(/^the data are in block \d+ 0x[0-9a-f]{64}\n$/);
});

it.each([
  ['proof', 'name a submission id, or --verify'],
  ['proof an-id --verify proof.json --data blob.bin', 'name a submission id, or --verify'],
  ['proof --verify proof.json', '--verify needs --data, and no other option'],
  ['proof an-id --data blob.bin', '--verify needs --data, and no other option'],
  ['proof --verify none.json --data blob.bin', 'no such file'],
  ['proof --verify blob.bin --data blob.bin', 'blob.bin is not JSON'],
  [
    'proof --verify large.json --data blob.bin',
    'large.json or a line of it has more than 8388608 characters',
  ],
])('`dawatch %s` is refused: %s', async (line, text) => {
  writeFileSync(inFolder('large.json'), Buffer.alloc(8 * 1024 * 1024 + 1, ' '));
  writeFileSync(inFolder('proof.json'), '{}');
  expect(await run(line)).toMatchObject({ code: 2, stderr: expect.stringContaining(text) });
});

it('there is no proof of an id that is unknown, or not confirmed', async () => {
  expect(await run('proof an-id', url)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('an-id was never tracked here'),
  });
  await run('track later', url);
  expect(await run('proof later', url)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('later has no proof: the chain was not asked for its block'),
  });
});
