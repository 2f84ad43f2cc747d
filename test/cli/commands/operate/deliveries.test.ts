import { describe, expect, it, vi } from 'vitest';
import { ADMIN_TOKEN } from '../../../support/app/lookups.ts';
import { useNotifyingApp } from '../../../support/app/notifying-app.ts';
import { cli, cliProcess } from '../../../support/processes/cli.ts';
import { openReceiver } from '../../../support/servers/receiver.ts';
import { serve } from '../../../support/servers/upstream-server.ts';

const app = useNotifyingApp();
const run = (args: string[], url = app.url, runs = cli) =>
  runs(['deliveries', ...args], {
    env: { DAWATCH_URL: url, DAWATCH_API_KEY: null, DAWATCH_ADMIN_TOKEN: ADMIN_TOKEN },
  });

/** A webhook whose receiver fails at first, with one attempted delivery per submission. */
async function failed(ids: string[]) {
  const receiver = await openReceiver([...ids.map(() => ({ status: 500, body: 'not now' })), {}]);
  const { id: webhook } = await app.create({ url: receiver.url, metadata: { of: ids[0] ?? '' } });
  await app.cancelled(ids, { metadata: { of: ids[0] } });
  const deliveries = (await app.deliveries(`webhook_id=${webhook}`)).toReversed();
  for (const { id } of deliveries) await app.tried(id);
  return { receiver, webhook, deliveries };
}

describe('list', () => {
  it('shows deliveries with their destinations, newest first', async () => {
    const { webhook, deliveries } = await failed(['list-1', 'list-2']);
    const { code, stdout } = await run(['list', '--webhook', webhook], app.url, cliProcess);
    expect(code).toBe(0);
    const [head, first, second] = stdout.split('\n');
    expect(head).toMatch(
      /^id +created +event +submission +destination +attempts +last response +state$/,
    );
    expect(first).toMatch(
      new RegExp(
        `^${deliveries[1]?.id} +\\S+Z  submission\\.cancelled  list-2 +webhook:${webhook}  1 +HTTP 500 +waiting until \\S+Z$`,
      ),
    );
    expect(second).toContain('list-1');
  });

  it('accepts every filter, and prints the same JSON as the HTTP interface', async () => {
    const { webhook, deliveries } = await failed(['json-1', 'json-2']);
    const listed = async (...args: string[]) =>
      (
        JSON.parse((await run(['list', '--json', ...args])).stdout).deliveries as { id: number }[]
      ).map(({ id }) => id);
    const [one, two] = deliveries;
    expect(await listed('--destination', `webhook:${webhook}`, '--state', 'waiting')).toEqual([
      two?.id,
      one?.id,
    ]);
    expect(await listed('--submission', 'json-1')).toEqual([one?.id]);
    expect(await listed('--event', two?.event_id ?? '')).toEqual([two?.id]);
    expect(await listed('--webhook', webhook, '--limit', '1')).toEqual([two?.id]);
    expect(await listed('--webhook', webhook, '--state', 'dead')).toEqual([]);
    const types = ['--type', 'submission.failed', '--type', 'submission.cancelled'];
    expect(
      await listed('--webhook', webhook, '--state', 'dead,waiting', ...types, '--since', '1h'),
    ).toEqual([two?.id, one?.id]);
    expect(await listed('--webhook', webhook, '--type', 'upstream.*')).toEqual([]);
    expect(await listed('--webhook', webhook, '--until', '1h')).toEqual([]);
  });
});

it.each([
  [['--state', 'waiting,gone'], /is not a state/],
  [['--type', 'submission.gone'], /is not an event type/],
  [['--since', '1h', '--until', '2h'], /must be after the start/],
])('list refuses %j', async (args, message) => {
  const { code, stderr } = await run(['list', ...args]);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});

describe('show', () => {
  it('shows every attempt with the response of the receiver', async () => {
    const { deliveries } = await failed(['show']);
    const id = String(deliveries[0]?.id);
    const { code, stdout } = await run(['show', id]);
    expect(code).toBe(0);
    for (const line of [
      /^submission +show$/m,
      /^event +evt_\w+ {2}submission\.cancelled$/m,
      /^attempts$/m,
    ])
      expect(stdout).toMatch(line);
    expect(stdout).toMatch(/^ {2}\S+Z {2}HTTP 500 {2}\d+ ms {2}\S.*\n {4}not now\n$/m);
    expect(JSON.parse((await run(['show', id, '--json'])).stdout)).toEqual(
      await app.details(Number(id)),
    );
  });

  it('escapes control characters of responses', async () => {
    const evil = '\u001b[31m\nattempts\u009b2J\u202e';
    const delivery = {
      ...{
        id: 1,
        event_id: evil,
        event_type: evil,
        submission_id: evil,
        destination: evil,
        state: 'dead',
      },
      ...{ dead_reason: evil, attempts_made: 1, next_at: null, created_at: evil, ended_at: evil },
      attempts: [{ at: 'then', duration_ms: 1, http_status: null, error: evil, response: evil }],
    };
    const { url } = await serve((_, response) => response.end(JSON.stringify(delivery)));
    const { stdout } = await run(['show', '1'], url);
    for (const control of ['\u001b', '\u009b', '\u202e']) expect(stdout).not.toContain(control);
    expect(stdout.match(/^attempts/gm)).toHaveLength(1);
    expect(stdout).toContain('no response');
  });
});

describe('replay', () => {
  it('sends single deliveries again', async () => {
    const { receiver, deliveries } = await failed(['one', 'two']);
    const ids = deliveries.map(({ id }) => String(id));
    const { code, stdout } = await run(['replay', ...ids]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      new RegExp(`^replayed ${ids[0]}  webhook:wh_\\w+\nreplayed ${ids[1]}  webhook:wh_\\w+\n$`),
    );
    await vi.waitFor(() => expect(receiver.requests).toHaveLength(4), { timeout: 15_000 });
  });

  it('sends every dead letter of a destination again', async () => {
    const { receiver, webhook } = await failed(['dead-1', 'dead-2']);
    await app.admin('PATCH', `/v1/webhooks/${webhook}`, { enabled: false });
    await app.admin('PATCH', `/v1/webhooks/${webhook}`, { enabled: true });
    const dead = ['replay', '--destination', `webhook:${webhook}`, '--since', '10m'];
    expect((await run([...dead, '--dry-run'])).stdout).toBe('would replay 2\n');
    const some = ['--submission', 'dead-1', '--type', 'submission.*'];
    expect((await run([...dead, '--dry-run', ...some])).stdout).toBe('would replay 1\n');
    const { code, stdout } = await run(dead);
    expect([code, stdout]).toEqual([0, 'replayed 2\n']);
    await vi.waitFor(() => expect(receiver.requests).toHaveLength(4), { timeout: 15_000 });
  });
});

describe('exits with 2 for', () => {
  it.each([
    ['nothing to replay', ['replay'], 'give either numbers, or both --destination and --since'],
    [
      'both ways at once',
      ['replay', '1', '--destination', 'channel:a', '--since', '1h'],
      'give either numbers',
    ],
    [
      'a destination without a time',
      ['replay', '--destination', 'channel:a'],
      'give either numbers',
    ],
    [
      'a condition without a destination',
      ['replay', '1', '--type', 'submission.*'],
      'give either numbers',
    ],
    [
      'an empty range',
      ['replay', '--destination', 'channel:a', '--since', '1h', '--until', '2h'],
      'must be after',
    ],
    ['a time without a destination', ['replay', '1', '--since', '1h'], 'give either numbers'],
    [
      'an invalid destination',
      ['replay', '--destination', 'ops', '--since', '1h'],
      'webhook:<id>, channel:<name>',
    ],
    ['an invalid number', ['replay', '1', 'two'], 'a number from `dawatch deliveries list`'],
    ['an unknown delivery', ['replay', '999999'], 'there is no delivery 999999'],
    ['nothing to show', ['show'], "missing required argument 'id'"],
    ['an unknown id', ['show', '999999'], 'there is no delivery 999999'],
    [
      'an unknown state',
      ['list', '--state', 'failed'],
      'Allowed choices are waiting, delivered, dead, discarded',
    ],
    ['a limit of zero', ['list', '--limit', '0'], 'from 1 to 1000'],
    [
      'two destinations',
      ['list', '--webhook', 'callbacks', '--destination', 'channel:b'],
      'cannot be combined with webhook_id',
    ],
    ['an invalid event id', ['list', '--event', '7'], 'the id of an event'],
  ])('%s', async (_, args, message) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});
