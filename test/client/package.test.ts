import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { toEventJson } from '../../src/domain/notifications/event-body.ts';
import { API_KEY, useAppWithSandbox } from '../support/running-app.ts';

const ROOT = join(import.meta.dirname, '../..');
const EXAMPLES = join(ROOT, 'docs/examples');
/** The dependencies of the client package. */
const NAMES = readdirSync(EXAMPLES).filter((name) =>
  readFileSync(join(EXAMPLES, name), 'utf8').includes("'dawatch/client'"),
);
const TSC = join(ROOT, 'node_modules/.bin/tsc');

/** A folder of a user who installed dawatch and copied the examples. */
let folder = '';
const app = useAppWithSandbox();

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'dawatch-package-'));
  const installed = join(folder, 'node_modules/dawatch');
  mkdirSync(installed, { recursive: true });
  execFileSync(TSC, ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(installed, 'dist/client')]);
  copyFileSync(join(ROOT, 'package.json'), join(installed, 'package.json'));
  for (const name of NAMES) copyFileSync(join(EXAMPLES, name), join(folder, name));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Prefers the machine's own Node, if it is new enough, to the one that npm ci installed. */
function findNode(): string {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((path) => !path.includes('node_modules'));
  const found = folders.map((path) => join(path, 'node')).find((path) => existsSync(path));
  const major = found && Number(/^v(\d+)/.exec(execFileSync(found, ['--version'], { encoding: 'utf8' }))?.[1]);
  return found && major && major >= 20 ? found : process.execPath;
}

function start(example: string, args: string[], env: Record<string, string>) {
  const child = spawn(findNode(), [example, ...args], { cwd: folder, env });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

it.each(NAMES)('docs/client.md shows %s unchanged', (name) => {
  const code = readFileSync(join(EXAMPLES, name), 'utf8').split('\n').slice(1).join('\n');
  expect(readFileSync(join(ROOT, 'docs/client.md'), 'utf8')).toContain(`\`\`\`js\n${code}\`\`\``);
});

it('tracks submissions and returns their results, as in the example', async () => {
  const ids = [app.submit(), app.submit(), app.submit()];
  const child = start('track-and-wait.mjs', ids, { DAWATCH_URL: app.url, DAWATCH_API_KEY: API_KEY });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(stderr).toBe('');
  const lines = stdout.trim().split('\n');
  for (const line of lines) expect(line).toMatch(/^\d+ submission\.finalized \S{36} \d+$/);
  expect(lines.map((line) => line.split(' ')[2]).toSorted()).toEqual(ids.toSorted());
});

it('throws an error with the problem, as in the example', async () => {
  const child = start('track-and-wait.mjs', ['not good'], { DAWATCH_URL: app.url, DAWATCH_API_KEY: API_KEY });
  expect(await text(child.stderr)).toContain('a submission id is 1 to 128 printable ASCII characters');
});

it('accepts only genuine webhooks, as in the example', async () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const child = start('receive-webhooks.mjs', [], {
    PORT: '0',
    DAWATCH_WEBHOOK_SECRET: `whsec_${'a'.repeat(44)} ${secret}`,
  });
  const port = /\d+/.exec(String(await new Promise((resolve) => child.stdout.once('data', resolve))))?.[0];
  const payload = toEventJson({ seq: 1, id: 'evt_1', at: 0, type: 'upstream.up', upstream: 'default' });
  const timestamp = Math.floor(Date.now() / 1_000);
  const hmac = createHmac('sha256', Buffer.alloc(32, 7)).update(`evt_1.${timestamp}.${payload}`).digest('base64');
  const send = (signature: string) =>
    fetch(`http://127.0.0.1:${port}`, {
      method: 'POST',
      body: payload,
      headers: { 'webhook-id': 'evt_1', 'webhook-timestamp': String(timestamp), 'webhook-signature': signature },
    });
  expect((await send(`v1,${hmac}`)).status).toBe(204);
  const refused = await send('v1,AAAA');
  expect([refused.status, await refused.text()]).toEqual([400, 'no_match']);
});

it('has types that compile in strict mode', () => {
  const code = `
    import { DawatchClient, type Submission } from 'dawatch/client';
    const client = new DawatchClient({ url: '', apiKey: '' });
    export const final: Submission = await client.waitUntilFinal('a', { timeoutMs: 1 });
    for await (const event of client.events({ after: 1 }))
      if (event.type === 'submission.finalized') {
        console.log(event.data.submission.status);
        // @ts-expect-error
        console.log(event.data.upstream);
      }
  `;
  writeFileSync(join(folder, 'use.mts'), code);
  const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')];
  const options = ['--ignoreConfig', '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', ...types];
  expect(execFileSync(TSC, [...options, join(folder, 'use.mts')], { encoding: 'utf8' })).toBe('');
});
