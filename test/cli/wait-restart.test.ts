import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../src/sandbox/server.ts';
import { startCli } from '../support/cli.ts';
import { openApp } from '../support/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';

it('goes on waiting while the server is restarted', async () => {
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
  const after = await openApp({ ...setting, port: Number(new URL(before.url).port) });
  onTestFinished(() => after.close());
  expect(await exit).toBe(0);
  expect(shown).toContain(`finalized  ${id}`);
});
