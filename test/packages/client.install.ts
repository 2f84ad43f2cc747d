import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { clientTypes, FILE } from '../../.ci/docs/client-types.ts';
import { FILE as PAGE, withRouteTable } from '../../.ci/docs/route-table.ts';
import { bytesBelow } from '../../bench/support/folder-size.ts';
import { DawatchClient } from '../../src/client/index.ts';
import { toEventJson } from '../../src/notifications/event-body.ts';
import { API_KEY, useAppWithSandbox } from '../support/app/running-app.ts';
import { blocksOf, storeExample } from '../support/documents.ts';
import { removedAfterTests } from './support/folders.ts';
import { type Installed, installInto } from './support/installed.ts';
import { CLIENT_NODE } from './support/pack.ts';

const EXAMPLES = ['docs/client.md', 'docs/webhooks.md'].flatMap(blocksOf);
/** A quarter of it is the types of the API, with their descriptions. */
const MAX_BYTES = 260_000;

const { client: tarball, npmCli, nodes, bun } = inject('packages');
const folder = removedAfterTests();
const app = useAppWithSandbox();
const nodePath = nodes[CLIENT_NODE] as string;
let installed: Installed;
beforeAll(() => {
  installed = installInto(folder, { tarball, npmCli, nodePath });
  for (const { page, file } of EXAMPLES)
    if (file?.endsWith('.mjs')) storeExample(page, file, installed.folder);
});

it('the client has the types, and docs/http.md the routes, that npm run docs:client writes from /openapi.json', async () => {
  const document = await (await fetch(`${app.url}/openapi.json`)).text();
  expect(readFileSync(FILE, 'utf8')).toBe(clientTypes(document));
  const page = readFileSync(PAGE, 'utf8');
  expect(page).toBe(withRouteTable(page, document));
});

// docs.install.ts runs the examples with the newest Node.
describe.each([
  [`Node ${CLIENT_NODE}`, join(nodePath, 'node')],
  ['Bun', bun],
])('the installed client on %s', (_, program) => {
  function start(example: string, args: string[], env: Record<string, string>) {
    const child = spawn(program, [example, ...args], { cwd: installed.folder, env });
    onTestFinished(() => void child.kill('SIGKILL'));
    return child;
  }

  it('tracks submissions and returns their results, as in the example', async () => {
    const ids = [app.submit(), app.submit(), app.submit()];
    const child = start('track-and-wait.mjs', ids, {
      DAWATCH_URL: app.url,
      DAWATCH_API_KEY: API_KEY,
    });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(stderr).toBe('');
    const lines = stdout.trim().split('\n');
    for (const line of lines) expect(line).toMatch(/^finalized \S{36} \d+$/);
    expect(lines.map((line) => line.split(' ')[1]).toSorted()).toEqual(ids.toSorted());
  });

  it('follows the events after its position, as in the example', async () => {
    const id = app.submit();
    const client = new DawatchClient({ url: app.url, apiKey: API_KEY });
    await client.track([id]);
    const { value: event } = await client.events({ after: 0, submissionId: id }).next();
    const position = join(installed.folder, 'position.txt');
    writeFileSync(position, String(Number(event?.seq) - 1));
    const child = start('follow-events.mjs', [], {
      DAWATCH_URL: app.url,
      DAWATCH_API_KEY: API_KEY,
    });
    const [lines] = await once(child.stdout, 'data');
    expect(String(lines)).toMatch(`${event?.seq} submission.finalized ${id} `);
    const exited = once(child, 'exit');
    child.kill();
    expect([await text(child.stderr), (await exited)[0]]).toEqual(['', 0]);
    expect(Number(readFileSync(position, 'utf8'))).toBeGreaterThanOrEqual(Number(event?.seq));
  });

  it('throws an error with the problem, as in the example', async () => {
    const child = start('track-and-wait.mjs', ['not good'], {
      DAWATCH_URL: app.url,
      DAWATCH_API_KEY: API_KEY,
    });
    expect(await text(child.stderr)).toContain(
      'a submission id is 1 to 128 printable ASCII characters',
    );
  });

  it('accepts only genuine webhooks, as in the example', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const child = start('receive-webhooks.mjs', [], {
      PORT: '0',
      DAWATCH_WEBHOOK_SECRET: `whsec_${'a'.repeat(44)} ${secret}`,
    });
    const port = /port: (\d+)/.exec(
      String(await new Promise((resolve) => child.stdout.once('data', resolve))),
    )?.[1];
    const payload = toEventJson({
      seq: 1,
      id: 'evt_1',
      at: 0,
      type: 'upstream.up',
      reason: 'HTTP 503',
      upstream: 'default',
    });
    const timestamp = Math.floor(Date.now() / 1_000);
    const hmac = createHmac('sha256', Buffer.alloc(32, 7))
      .update(`evt_1.${timestamp}.${payload}`)
      .digest('base64');
    const send = (signature: string) =>
      fetch(`http://127.0.0.1:${port}`, {
        method: 'POST',
        body: payload,
        headers: {
          'webhook-id': 'evt_1',
          'webhook-timestamp': String(timestamp),
          'webhook-signature': signature,
        },
      });
    expect((await send(`v1,${hmac}`)).status).toBe(204);
    const refused = await send('v1,AAAA');
    expect([refused.status, await refused.text()]).toEqual([400, 'no_match']);
  });

  it('can be loaded with require', async () => {
    writeFileSync(
      join(installed.folder, 'use.cjs'),
      `const { DawatchClient } = require('@dawatch/client');
       const { verifyWebhook } = require('@dawatch/client/webhook');
       const { verifyProof } = require('@dawatch/client/proof');
       console.log(typeof DawatchClient, typeof verifyWebhook, typeof verifyProof);`,
    );
    const child = start('use.cjs', [], {});
    expect(await text(child.stdout)).toBe('function function function\n');
  });
});

it('imports nothing of Node except for webhooks, so that browsers can load it', () => {
  const modules = join(installed.folder, 'node_modules/@dawatch/client/dist/esm');
  const importing = readdirSync(modules).filter(
    (name) =>
      name.endsWith('.js') && /from ['"]node:/.test(readFileSync(join(modules, name), 'utf8')),
  );
  expect(importing).toEqual(['webhook.js']);
});

it('installs two dependencies, and is smaller than 260 kB without them', () => {
  const modules = join(installed.folder, 'node_modules');
  expect(readdirSync(modules).filter((name) => !name.startsWith('.'))).toEqual([
    '@dawatch',
    '@noble',
    'eventsource-parser',
  ]);
  expect(bytesBelow(join(modules, '@dawatch'))).toBeLessThan(MAX_BYTES);
});
