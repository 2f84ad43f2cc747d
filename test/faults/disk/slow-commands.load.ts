import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { prepareServer } from '../../support/processes/killable-server.ts';
import { COMPILED, MAIN } from '../../support/processes/main-file.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { openFaultyDisk } from './faulty-disk.ts';
import { isCompilerMissing } from './preload.ts';

const SYNC_MS = 200;
const TRACKED = 20_000;
const PER_REQUEST = 5_000;
/** Some commits of the command sync the beginning of a new log. */
const MAX_WAITING = 0.2;

test.skipIf(isCompilerMissing())(
  'a command that writes beside a server does not lock the ledger while it waits for a slow disk',
  async () => {
    const folder = tempFolder();
    const disk = openFaultyDisk(folder, folder);
    disk.set({ syncDelayMs: SYNC_MS });
    const server = await prepareServer(folder, {
      upstreams: { default: { url: 'http://127.0.0.1:9', api_key: 'any' } },
    });
    server.start();
    await server.listening();
    const { client } = server;
    for (let tracked = 0; tracked < TRACKED; tracked += PER_REQUEST)
      await client.track(
        Array.from({ length: PER_REQUEST }, () => randomUUID()),
        { metadata: { customer: 'ada' } },
      );
    // Only the command has the slow disk.
    const args = [MAIN, 'erase', '--metadata', 'customer=ada', '--config', `${folder}/dawatch.yaml`];
    const erase = spawn(process.execPath, args, { env: { ...COMPILED, ...disk.env }, stdio: 'ignore' });
    const exit = once(erase, 'exit');
    const posts: number[] = [];
    while (erase.exitCode === null) {
      const from = performance.now();
      await client.track([randomUUID()]);
      posts.push(performance.now() - from);
    }
    expect(await exit).toEqual([0, null]);
    const sum = (values: readonly number[]) => values.reduce((total, ms) => total + ms, 0);
    const waiting = sum(posts.filter((ms) => ms > SYNC_MS / 2)) / sum(posts);
    console.log(
      `${posts.length} posts, of the time ${(100 * waiting).toFixed(0)} % in slow ones, the longest ${Math.max(...posts).toFixed(0)} ms`,
    );
    expect(waiting).toBeLessThan(MAX_WAITING);
    expect(await server.stop()).toBe(0);
  },
);
