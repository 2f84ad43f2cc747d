import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { post } from '../../../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../../../support/app/lookups.ts';
import { API_KEY, useApp } from '../../../support/app/running-app.ts';
import { cli } from '../../../support/processes/cli.ts';
import { openReceiver } from '../../../support/servers/receiver.ts';

const app = useApp({
  adminToken: ADMIN_TOKEN,
  webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
  channels: { ops: { type: 'slack', url: 'http://127.0.0.1:1/SECRET' } },
  routes: [{ types: ['alert.*'], channels: ['ops'] }],
});
const run = (args: string[]) =>
  cli(args, {
    env: { DAWATCH_URL: app.url, DAWATCH_API_KEY: API_KEY, DAWATCH_ADMIN_TOKEN: ADMIN_TOKEN },
  });

let id = '';
app.prepare(async () => {
  await post(app.url, { submission_id: randomUUID() });
  id = await vi.waitFor(
    async () => {
      const { alerts } = JSON.parse((await run(['alerts', '--json'])).stdout);
      return String(
        alerts.find(({ rule }: { rule: string }) => rule === 'upstream_down')?.id ?? expect.fail(),
      );
    },
    { timeout: 15_000, interval: 50 },
  );
});

describe('alerts', () => {
  it('lists the firing alerts, also without a subcommand', async () => {
    const { code, stdout } = await run(['alerts']);
    expect(code).toBe(0);
    const [head, ...rows] = stdout.split('\n');
    expect(head).toMatch(/^id +since +state +rule +subject +summary$/);
    expect(rows.join('\n')).toMatch(
      new RegExp(
        `^${id} +\\S+Z +firing +upstream_down +default +The upstream default is not responding`,
        'm',
      ),
    );
    expect((await run(['alerts', 'list', '--limit', '10'])).stdout).toContain('upstream_down');
    const none = await run(['alerts', '--state', 'resolved']);
    expect(none).toMatchObject({ code: 0, stdout: '', stderr: 'no alerts are resolved\n' });
  });

  it('acknowledges an alert, and withdraws that', async () => {
    const acknowledged = await run(['alerts', 'acknowledge', id]);
    expect(acknowledged).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^state +acknowledged by DAWATCH_ADMIN_TOKEN$/m),
    });
    expect((await run(['alerts', 'acknowledge', id, '--withdraw'])).stdout).toMatch(
      /^state +firing$/m,
    );
  });

  it('mutes a subject, lists the mute, and ends it', async () => {
    const made = await run(
      'alerts mute upstream_down default --until 2h --reason halted'.split(' '),
    );
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^reason +halted$/m) });
    const [{ until, id: muteId }] = JSON.parse(
      (await run(['alerts', 'mutes', '--json'])).stdout,
    ).mutes;
    expect(Date.parse(until) - Date.now()).toBeGreaterThan(7_190_000);
    expect((await run(['alerts'])).stdout).toContain(`muted until ${until}`);
    expect((await run(['alerts', 'mutes'])).stdout).toMatch(
      /upstream_down +default +DAWATCH_ADMIN_TOKEN +halted/,
    );
    expect(await run(['alerts', 'unmute', String(muteId)])).toMatchObject({ code: 0, stdout: '' });
    expect(await run(['alerts', 'unmute', String(muteId)])).toMatchObject({ code: 2 });
  });

  it('plans a maintenance window, whose end counts from its start', async () => {
    const made = await run('alerts mute --all --from 1h --until 4h --json'.split(' '));
    const { id: muteId, rule, from, until, active } = JSON.parse(made.stdout);
    expect([rule, active, Date.parse(until) - Date.parse(from)]).toEqual([
      null,
      false,
      4 * 3_600_000,
    ]);
    await run(['alerts', 'unmute', String(muteId)]);
  });

  it.each([
    ['mute stuck', '--until <time>'],
    ['mute stuk --until 2h', 'Allowed choices are'],
    ['acknowledge 4711', 'there is no alert 4711'],
  ])('refuses %s', async (line, message) => {
    expect(await run(['alerts', ...line.split(' ')])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(message),
    });
  });
});

describe('channels', () => {
  it('lists the channels without their secrets', async () => {
    const { code, stdout } = await run(['channels', 'list']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^name +type +address +events +waiting +dead +last success +last failure\nops +slack +\S+\/\*{8} +alert\.\* +\d+ +\d+ +\S+ +\S+$/m,
    );
    expect((await run(['channels', 'list', '--json'])).stdout).not.toContain('SECRET');
  });

  it('tests a channel, and exits with 3 if the attempt failed', async () => {
    const { code, stdout } = await run(['channels', 'test', 'ops']);
    expect([code, stdout]).toEqual([
      3,
      expect.stringMatching(/^ {2}\S+ {2}\d+ ms {2}the connection was refused$/m),
    ]);
    expect(await run(['channels', 'test', 'other'])).toMatchObject({ code: 2 });
  });
});

it('webhooks test callbacks tests the address of a callback', async () => {
  const receiver = await openReceiver();
  const args = ['webhooks', 'test', 'callbacks', '--url', `${receiver.url}/hook`];
  const { code, stdout } = await run(args);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/HTTP 200/)]);
  expect(receiver.requests[0]).toMatchObject({ path: '/hook', method: 'POST' });
});
