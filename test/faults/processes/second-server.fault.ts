import { expect, test } from 'vitest';
import { ExitCode } from '../../../src/cli/exit.ts';
import { prepareServer } from '../../support/processes/killable-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { prepareWorld } from '../support/world.ts';

test('a second server on the same ledger is refused, and the first does not notice', async () => {
  const world = await prepareWorld('second server');
  await world.start();
  await world.track(100);
  const upstreams = { default: { url: world.sandbox.url, api_key: 'sandbox-key' } };
  const second = await prepareServer(tempFolder(), { database: world.server.file, upstreams });
  second.start();
  expect(await second.exited()).toBe(ExitCode.server);
  expect(second.lines.join('\n')).toMatch(
    /is in use by another dawatch: only one server can use a ledger; stop it first/,
  );
  await world.track(100);
  await world.expectSurvived();
});
