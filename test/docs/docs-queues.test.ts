import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../src/sandbox/server.ts';
import { appForTest } from '../support/app/running-app.ts';
import { storeExample } from '../support/documents.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';

/** In this repository, so that its packages are found. */
const FOLDERS = join(import.meta.dirname, '../../node_modules/.cache');

function start(name: string, redisUrl: string, args: string[] = []) {
  mkdirSync(FOLDERS, { recursive: true });
  const folder = mkdtempSync(join(FOLDERS, 'queues-'));
  const example = storeExample('docs/queues.md', name, folder);
  const child = spawn(process.execPath, [example, ...args], {
    env: { DAWATCH_REDIS_URL: redisUrl },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });
  const printed = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (printed.stdout += chunk));
  child.stderr.on('data', (chunk) => (printed.stderr += chunk));
  const ended = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    ...printed,
  }));
  return { child, printed, ended };
}

it.skipIf(isRedisMissing())(
  'with Redis, the example of a producer tracks submissions, and ends with the reason of a failed job; that of a consumer prints the events until SIGTERM',
  async () => {
    const redis = await redisForTest();
    const sandbox = await startSandbox({ options: { speed: 200 } });
    onTestFinished(() => sandbox.close());
    const database = join(tempFolder(), 'ledger.db');
    await appForTest({ database, upstreamUrl: sandbox.url, redisUrl: redis.url });
    const consumer = start('consume.mjs', redis.url);
    const id = sandbox.model.submit('data', Date.now());
    const { stdout, stderr, code } = await start('enqueue.mjs', redis.url, [id]).ended;
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toContain(
      'tracked {"accepted":1,"already_tracked":0,"already_final":0,"retracked":0,"kept_options":[]}',
    );
    expect(await start('enqueue.mjs', redis.url, ['not an id']).ended).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        'refused: the job data must be a request body of POST /v1/submissions',
      ),
    });
    const line = `submission.finalized ${id}`;
    await eventually(() => expect(consumer.printed.stdout).toContain(line));
    consumer.child.kill();
    expect(await consumer.ended).toMatchObject({ code: 0, stderr: '' });
  },
);
