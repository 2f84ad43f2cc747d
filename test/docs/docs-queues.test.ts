import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startSandbox } from '../../src/sandbox/server.ts';
import { openApp } from '../support/app/running-app.ts';
import { storeExample } from '../support/documents.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

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

/** Resolves when the consumer waits for jobs. */
async function whenItWaits(url: string): Promise<void> {
  const redis = new Redis(url);
  await vi.waitFor(
    async () => expect(await redis.client('LIST')).toContain('cmd=bzpopmin'),
    10_000,
  );
  redis.disconnect();
}

const linesOf = (output: string) => output.split('\n').filter((line) => line !== '');

describe.skipIf(isRedisMissing())('with Redis, the example of', () => {
  async function openWorld() {
    const redis = await redisForTest();
    const sandbox = await startSandbox({ options: { speed: 200 } });
    onTestFinished(() => sandbox.close());
    const database = join(tempFolder(), 'ledger.db');
    const app = await openApp({ database, upstreamUrl: sandbox.url, redisUrl: redis.url });
    onTestFinished(() => app.close());
    return { redis, submit: () => sandbox.model.submit('data', Date.now()) };
  }

  it('a producer tracks submissions, and that of a consumer prints their events until SIGTERM', async () => {
    const { redis, submit } = await openWorld();
    const consumer = start('consume.mjs', redis.url);
    const id = submit();
    const { stdout, stderr, code } = await start('enqueue.mjs', redis.url, [id]).ended;
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toContain(
      'tracked { accepted: 1, already_tracked: 0, already_final: 0, retracked: 0 }',
    );
    const line = `submission.finalized ${id}`;
    await vi.waitFor(() => expect(consumer.printed.stdout).toContain(line), 10_000);
    consumer.child.kill();
    expect(await consumer.ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('a producer ends with the reason of a failed job', async () => {
    const { redis } = await openWorld();
    const { stderr, code } = await start('enqueue.mjs', redis.url, ['not an id']).ended;
    expect(stderr).toContain(
      'refused: the job data must be a request body of POST /v1/submissions',
    );
    expect(code).toBe(1);
  });

  it('a consumer ends when Redis goes away, with one line', async () => {
    const redis = await redisForTest();
    const { ended } = start('consume.mjs', redis.url);
    await whenItWaits(redis.url);
    await redis.kill();
    const { code, stderr } = await ended;
    expect(code).toBe(1);
    expect(linesOf(stderr)).toHaveLength(1);
  });

  it('a consumer ends on SIGTERM while Redis does not respond', async () => {
    const redis = await redisForTest();
    const { child, ended } = start('consume.mjs', redis.url);
    await whenItWaits(redis.url);
    redis.pause();
    child.kill();
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('without Redis, the example of', () => {
  const UNREACHABLE = 'redis://127.0.0.1:1';

  it.each([
    ['a producer', 'enqueue.mjs'],
    ['a consumer', 'consume.mjs'],
  ])('%s ends, with one line', async (_name, file) => {
    const { code, stderr } = await start(file, UNREACHABLE, ['an-id']).ended;
    expect(code).toBe(1);
    expect(linesOf(stderr)).toEqual([expect.stringContaining('ECONNREFUSED')]);
  });
});
