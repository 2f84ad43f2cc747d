import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cli, cliProcess, outputOf, startCli } from '../../../support/processes/cli.ts';
import { isRedisMissing, redisForTest } from '../../../support/redis/redis-server.ts';
import { tempFolder } from '../../../support/temp-folder.ts';
import { eventually, until } from '../../../support/until.ts';

const UPSTREAM = {
  DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1',
  DAWATCH_UPSTREAM_API_KEY: 'a-key-of-the-upstream',
};

async function started(url: string, command = 'worker', env: Record<string, string> = {}) {
  const { child, stop } = startCli([command], {
    env: { ...UPSTREAM, ...env, DAWATCH_REDIS_URL: url },
  });
  const output = outputOf(child);
  await until(() => /(?:worker|server)\.started/.test(output.stdout));
  return { stop, output };
}

it.each(['worker', 'serve'])(
  '`%s` reports once that Redis is unreachable, and not at each attempt to connect',
  async (command) => {
    let attempts = 0;
    const refusing = createServer((socket) => {
      attempts += 1;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void refusing.close());
    await once(refusing, 'listening');
    const { port } = refusing.address() as AddressInfo;
    const running = await started(`redis://:S3cret-password@127.0.0.1:${port}`, command, {
      DAWATCH_DATABASE: join(tempFolder(), 'ledger.db'),
      DAWATCH_PORT: '0',
    });
    // A process that is slow to log has made attempts before.
    const isReported = () => running.output.stdout.includes('redis.disconnected');
    await until(() => attempts > 3 && isReported());
    expect(await running.stop('SIGTERM')).toBe(0);
    const { stdout, stderr } = running.output;
    expect(stdout.match(/redis\.disconnected/g)).toHaveLength(1);
    expect(stderr).not.toContain('ECONN');
    const lines = stdout.trimEnd().split('\n');
    expect(lines.length).toBeLessThan(10);
    for (const line of lines) expect(JSON.parse(line)).toHaveProperty('event');
    expect(stdout).not.toMatch(/S3cret-password|a-key-of-the-upstream/);
  },
);

describe.skipIf(isRedisMissing())('with Redis', () => {
  it('connects with the name of its host until SIGINT, and --check reports that', async () => {
    const redis = await redisForTest();
    const check = (runs = cli) =>
      runs(['worker', '--check'], { env: { DAWATCH_REDIS_URL: redis.url } });
    expect(await check(cliProcess)).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('no worker of this host'),
    });
    const worker = await started(redis.url);
    await eventually(async () => expect((await check()).code).toBe(0));
    expect(await worker.stop('SIGINT')).toBe(0);
    expect((await check()).code).toBe(5);
    await redis.kill();
    expect(await check()).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('Redis does not respond'),
    });
  });

  it.each(['worker', 'serve'])('`%s` exits with 0 while Redis is suspended', async (command) => {
    const redis = await redisForTest();
    const running = await started(redis.url, command, {
      DAWATCH_DATABASE: join(tempFolder(), 'ledger.db'),
      DAWATCH_PORT: '0',
    });
    const isConnected = () => running.output.stdout.includes('redis.connected');
    await until(isConnected);
    redis.pause();
    expect(await running.stop('SIGTERM')).toBe(0);
  });
});
