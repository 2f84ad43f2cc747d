import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { trackOnce } from '../support/requests.ts';
import { prepareWorld } from '../support/world.ts';

/** Sufficient for the files that the server itself opens. */
const LIMIT = 160;
const PRLIMIT = 'prlimit';

test.skipIf(isMissing())(
  'survives without free file descriptors, and continues once there are some',
  async () => {
    const world = await prepareWorld('descriptors');
    const { server } = world;
    await world.start({ through: [PRLIMIT, `--nofile=${LIMIT}:${LIMIT}`, '--'] });
    await world.track(100);
    const held: Socket[] = [];
    onTestFinished(() => {
      for (const socket of held) socket.destroy();
    });
    for (let count = 0; count < 2 * LIMIT; count++)
      held.push(
        connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => undefined),
      );
    await sleep(2_000);
    // Otherwise the limit was not reached, and the test proves nothing.
    expect(readdirSync(`/proc/${server.pid()}/fd`).length).toBeGreaterThan(LIMIT - 5);
    const ids = world.submit(10);
    const during = await Promise.race([
      trackOnce(server.url, ids).then(
        ({ status }) => status,
        () => 'no connection',
      ),
      sleep(2_000).then(() => 'no answer'),
    ]);
    console.log(`without descriptors, tracking says: ${during}`);
    expect(server.isGone()).toBe(false);
    for (const socket of held.splice(0)) socket.destroy();
    await world.track(50);
    if (during === 202) for (const id of ids) world.expected.set(id, 'finalized');
    await world.expectSurvived();
  },
);

function isMissing(): boolean {
  if (process.platform === 'linux' && spawnSync(PRLIMIT, ['--version']).status === 0) return false;
  console.warn(
    'SKIPPED: there is no prlimit; without it nobody can take the file descriptors of a process.',
  );
  return true;
}
