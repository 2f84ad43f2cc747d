import { describe, expect, it } from 'vitest';
import { call, pathOf, post } from '../../../support/app/http-calls.ts';
import { useApp } from '../../../support/app/running-app.ts';
import { cli, outputOf, startCli } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';
import { eventually } from '../../../support/until.ts';

const app = useApp();

async function cancelled(ids: string[], fields: object = {}, url = app.url): Promise<void> {
  await post(url, { submission_ids: ids, upstream: 'other', ...fields });
  for (const id of ids) await call(url, pathOf(id), { method: 'DELETE' });
}

/** Starts `dawatch tail`. */
function tail(args: string[], url = app.url) {
  const { child, stop } = startCli(['tail', ...args], { env: { DAWATCH_URL: url } });
  child.stdin.end();
  const received = outputOf(child);
  const lines = () => received.stdout.split('\n').slice(0, -1);
  const has = (count: number) =>
    eventually(() => expect(lines().length).toBeGreaterThanOrEqual(count));
  return { received, lines, has, stop };
}

describe('tail', () => {
  it('prints a line per event when it occurs, and exits with 0 at SIGINT', async () => {
    const metadata = { at: 'now' };
    await cancelled(['before'], { metadata });
    const running = tail(['--after', '0', '--metadata', 'at=now']);
    await running.has(1);
    await cancelled(['after'], { metadata });
    await running.has(2);
    expect(running.lines()).toEqual([
      expect.stringMatching(/^\d+ {2}\S+Z {2}submission\.cancelled {2}before$/),
      expect.stringMatching(/^\d+ {2}\S+Z {2}submission\.cancelled {2}after$/),
    ]);
    expect(await running.stop('SIGINT')).toBe(0);
    expect(running.received.stderr).toBe('');
  });

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
    const { url } = await serve((request, response) => {
      if (request.url?.startsWith('/v1/events')) {
        attempts += 1;
        request.socket.destroy();
      } else response.setHeader('content-type', 'application/json').end('{"submissions":[]}');
    });
    const running = tail([], url);
    await eventually(() => expect(attempts).toBeGreaterThan(3));
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
