import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../src/sandbox/server.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const DOCS = join(import.meta.dirname, '../../docs');

it.each(['enqueue.mjs', 'consume.mjs', 'enqueue.py'])(
  'docs/queues.md contains %s unchanged',
  (name) => {
    const code = readFileSync(join(DOCS, 'examples', name), 'utf8')
      .split('\n')
      .slice(1)
      .join('\n');
    expect(readFileSync(join(DOCS, 'queues.md'), 'utf8')).toContain(`\n${code}\`\`\``);
  },
);

async function enqueue(url: string, ids: string[], server = '') {
  const child = spawn(process.execPath, [join(DOCS, 'examples/enqueue.mjs'), ...ids], {
    env: { DAWATCH_REDIS_URL: url, DAWATCH_URL: server, DAWATCH_API_KEY: API_KEY },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    exited,
  ]);
  return { stdout, stderr, code };
}

describe.skipIf(isRedisMissing())('with Redis, the example producer', () => {
  async function openWorld() {
    const redis = await redisForTest();
    const sandbox = await startSandbox({ options: { speed: 200 } });
    onTestFinished(() => sandbox.close());
    const database = join(tempFolder(), 'ledger.db');
    const app = await openApp({ database, upstreamUrl: sandbox.url, redisUrl: redis.url });
    onTestFinished(() => app.close());
    return { redis, url: app.url, submit: () => sandbox.model.submit('data', Date.now()) };
  }

  it('tracks submissions and waits until all are final', async () => {
    const { redis, url, submit } = await openWorld();
    const ids = [submit(), submit(), submit()];
    const { stdout, stderr, code } = await enqueue(redis.url, ids, url);
    expect(stderr).toBe('');
    expect(stdout).toContain(
      'tracked { accepted: 3, already_tracked: 0, already_final: 0, retracked: 0 }',
    );
    for (const id of ids) expect(stdout).toMatch(new RegExp(`finalized ${id} \\d+`));
    expect(code).toBe(0);
  });

  it('prints the reason of a failed job', async () => {
    const { redis } = await openWorld();
    const { stderr, code } = await enqueue(redis.url, ['not an id']);
    expect(stderr).toContain(
      'refused: the job data must be a request body of POST /v1/submissions',
    );
    expect(code).toBe(1);
  });
});
