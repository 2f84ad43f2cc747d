import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ExitCode } from '../../../src/cli/exit.ts';
import { prepareWorld } from '../support/world.ts';

/** Root may write everywhere, so the test drops its privileges. */
const UNPRIVILEGED_UID = 65_534;
const SETPRIV = 'setpriv';
const isRoot = process.getuid?.() === 0;

test.skipIf(isMissing())(
  'a read-only folder is refused at startup with the reason, without harm to a running server',
  async () => {
    const world = await prepareWorld('read-only folder');
    const { server, folder } = world;
    const own = () => {
      if (isRoot)
        for (const name of ['.', ...readdirSync(folder)])
          chownSync(join(folder, name), UNPRIVILEGED_UID, UNPRIVILEGED_UID);
    };
    const how = isRoot
      ? { through: [SETPRIV, `--reuid=${UNPRIVILEGED_UID}`, '--clear-groups', '--'] }
      : {};
    own();
    await world.start(how);
    await world.track(100);
    chmodSync(folder, 0o500);
    // The running server may still write its open files.
    await world.track(100);
    await server.kill();
    chmodSync(server.file, 0o400);
    server.start(how);
    expect(await server.exited()).toBe(ExitCode.usage);
    expect(server.lines.at(-1)).toMatch(
      /cannot write .*: check that its folder exists and that this user may write there/,
    );
    chmodSync(server.file, 0o600);
    chmodSync(folder, 0o700);
    server.start(how);
    await world.expectSurvived();
  },
);

function isMissing(): boolean {
  if (!isRoot || spawnSync(SETPRIV, ['--version']).status === 0) return false;
  console.warn(
    'SKIPPED: root may write everywhere, and there is no setpriv to become somebody else.',
  );
  return true;
}
