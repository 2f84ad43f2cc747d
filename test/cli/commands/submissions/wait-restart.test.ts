import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../../../src/sandbox/server.ts';
import { appForTest, openApp } from '../../../support/app/running-app.ts';
import { cli, startCli } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

it('continues to wait while the server restarts', async () => {
  const sandbox = await startSandbox({ options: { speed: 10 } });
  onTestFinished(() => sandbox.close());
  const setting = { database: join(tempFolder(), 'ledger.db'), upstreamUrl: sandbox.url };
  const before = await openApp(setting);
  const id = sandbox.model.submit('data', Date.now());
  const { child, exit } = startCli(['track', id, '--wait'], { env: { DAWATCH_URL: before.url } });
  child.stdin.end();
  let shown = '';
  child.stdout.on('data', (chunk) => {
    shown += chunk;
  });
  await new Promise((resolve) => child.stderr.once('data', resolve));
  await before.close();
  await appForTest({ ...setting, port: Number(new URL(before.url).port) });
  expect(await exit).toBe(0);
  expect(shown).toContain(`finalized  ${id}`);
});

it('continues to wait after it was rate limited', async () => {
  const refusals = ['GET', 'POST'];
  const submission = {
    submission_id: 'a',
    status: 'finalized',
    data: { block_number: 7 },
    polls: 1,
  };
  const { url } = await serve((request, response) => {
    const isFeed = request.method === 'GET';
    const isTracking = request.url === '/v1/submissions';
    if (!isTracking && refusals.includes(request.method ?? '')) {
      refusals.splice(refusals.indexOf(request.method ?? ''), 1);
      response.writeHead(429, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ title: 'Too many requests' }));
      return;
    }
    if (isFeed) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': dawatch\nid: 1\n\n');
      return;
    }
    const tracked = { accepted: 1, already_tracked: 0, submissions: [submission] };
    const found = { submissions: [submission], not_found: [], remaining: [] };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isTracking ? tracked : found));
  });
  const { code, stdout } = await cli(['track', 'a', '--wait'], { env: { DAWATCH_URL: url } });
  expect([code, stdout, refusals]).toEqual([0, 'finalized  a  block 7  1 request\n', []]);
});
