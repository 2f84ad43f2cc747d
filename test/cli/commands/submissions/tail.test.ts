import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { call, pathOf, post } from '../../../support/app/http-calls.ts';
import { useApp } from '../../../support/app/running-app.ts';
import { cli, startCli } from '../../../support/processes/cli.ts';

const app = useApp();

async function cancelled(ids: string[], fields: object = {}, url = app.url): Promise<void> {
  await post(url, { submission_ids: ids, upstream: 'other', ...fields });
  for (const id of ids) await call(url, pathOf(id), { method: 'DELETE' });
}

/** Starts `dawatch tail`. */
function tail(args: string[], url = app.url) {
  const { child, exit } = startCli(['tail', ...args], { env: { DAWATCH_URL: url } });
  child.stdin.end();
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (chunk) => {
      output[name] += chunk;
    });
  const lines = () => output.stdout.split('\n').slice(0, -1);
  const has = (count: number) =>
    vi.waitFor(() => expect(lines().length).toBeGreaterThanOrEqual(count), {
      timeout: 18_000,
      interval: 5,
    });
  const stop = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    return await exit;
  };
  return { child, exit, received: output, lines, has, stop };
}

describe('tail', () => {
  it.each(['SIGINT'] as const)(
    'prints a line per event when it occurs, and exits with 0 at %s',
    async (signal) => {
      await cancelled([`before-${signal}`], { metadata: { at: signal } });
      const running = tail(['--after', '0', '--metadata', `at=${signal}`]);
      await running.has(1);
      await cancelled([`now-${signal}`], { metadata: { at: signal } });
      await running.has(2);
      expect(running.lines()).toEqual([
        expect.stringMatching(
          new RegExp(`^\\d+  \\S+Z  submission\\.cancelled  before-${signal}$`),
        ),
        expect.stringMatching(new RegExp(`^\\d+  \\S+Z  submission\\.cancelled  now-${signal}$`)),
      ]);
      expect(await running.stop(signal)).toBe(0);
      expect(running.received.stderr).toBe('');
    },
  );

  it('prints with --json the events of one submission as webhooks receive them', async () => {
    await cancelled(['json-1', 'json-2']);
    const running = tail('--json --after 0 --id json-2 --type submission.cancelled'.split(' '));
    await running.has(1);
    const event = JSON.parse(running.lines()[0] ?? '');
    expect(Object.keys(event)).toEqual(['id', 'type', 'timestamp', 'data']);
    expect(event).toMatchObject({
      id: expect.stringMatching(/^evt_/),
      data: { submission: { submission_id: 'json-2' } },
    });
    await running.stop('SIGINT');
  });

  it('reports an outage once, and not at each attempt to connect', async () => {
    let attempts = 0;
    const server = createServer((request, response) => {
      if (request.url?.startsWith('/v1/events')) {
        attempts += 1;
        request.socket.destroy();
      } else response.setHeader('content-type', 'application/json').end('{"submissions":[]}');
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const running = tail([], `http://127.0.0.1:${port}`);
    await vi.waitFor(() => expect(attempts).toBeGreaterThan(3), 18_000);
    expect(await running.stop('SIGINT')).toBe(0);
    expect(running.received.stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^dawatch: .+; trying again until it works$/),
    ]);
  });

  it.each([
    ['an unknown type', ['--type', 'done'], '"done" is not an event type'],
    ['an invalid id', ['--id', 'a b'], 'a submission id is'],
  ])('refuses %s', async (_, args, message) => {
    const ended = await cli(['tail', ...args], { env: { DAWATCH_URL: app.url } });
    expect([ended.code, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toContain(message);
  });
});
