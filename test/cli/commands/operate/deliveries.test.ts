import { describe, expect, it, vi } from 'vitest';
import { ADMIN_TOKEN } from '../../../support/app/lookups.ts';
import { useNotifyingApp } from '../../../support/app/notifying-app.ts';
import { cli } from '../../../support/processes/cli.ts';
import { openReceiver } from '../../../support/servers/receiver.ts';

const app = useNotifyingApp();
const run = (line: string) =>
  cli(['deliveries', ...line.split(' ')], {
    env: { DAWATCH_URL: app.url, DAWATCH_API_KEY: null, DAWATCH_ADMIN_TOKEN: ADMIN_TOKEN },
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

it('list shows deliveries with their destinations, newest first, and sends every filter', async () => {
  const { webhook, deliveries } = await failed(['list-1', 'list-2']);
  const [one, two] = deliveries;
  const { code, stdout } = await run(`list --webhook ${webhook}`);
  expect(code).toBe(0);
  const [head, first, second] = stdout.split('\n');
  expect(head).toMatch(
    /^id +created +event +submission +destination +attempts +last response +state$/,
  );
  expect(first).toMatch(
    new RegExp(
      `^${two?.id} +\\S+Z  submission\\.cancelled  list-2 +webhook:${webhook}  \\d +HTTP \\d+ +(?:waiting until \\S+Z|delivered)$`,
    ),
  );
  expect(second).toContain('list-1');
  const listed = async (options: string) =>
    JSON.parse((await run(`list --json ${options}`)).stdout).deliveries.map(
      ({ id }: { id: number }) => id,
    );
  const states = '--state delivered,waiting --type submission.failed --type submission.cancelled';
  expect(await listed(`--destination webhook:${webhook} ${states} --since 1h`)).toEqual([
    two?.id,
    one?.id,
  ]);
  expect(await listed('--submission list-1')).toEqual([one?.id]);
  expect(await listed(`--event ${two?.event_id}`)).toEqual([two?.id]);
  expect(await listed(`--webhook ${webhook} --limit 1`)).toEqual([two?.id]);
  expect(await listed(`--webhook ${webhook} --until 1h`)).toEqual([]);
});

it('show shows every attempt with the response of the receiver', async () => {
  const { deliveries } = await failed(['show']);
  const id = deliveries[0]?.id ?? 0;
  const { code, stdout } = await run(`show ${id}`);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^submission +show$/m);
  expect(stdout).toMatch(/^ {2}\S+Z {2}HTTP 500 {2}\d+ ms {2}\S.*\n {4}not now\n$/m);
  expect(JSON.parse((await run(`show ${id} --json`)).stdout)).toEqual(await app.details(id));
});

it('replay sends single deliveries again', async () => {
  const { receiver, deliveries } = await failed(['one', 'two']);
  const ids = deliveries.map(({ id }) => String(id));
  const { code, stdout } = await run(`replay ${ids.join(' ')}`);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    new RegExp(`^replayed ${ids[0]}  webhook:wh_\\w+\nreplayed ${ids[1]}  webhook:wh_\\w+\n$`),
  );
  await vi.waitFor(() => expect(receiver.requests).toHaveLength(4), { timeout: 15_000 });
});

it('replay sends every dead letter of a destination again', async () => {
  const { receiver, webhook } = await failed(['dead-1', 'dead-2']);
  await app.admin('PATCH', `/v1/webhooks/${webhook}`, { enabled: false });
  await app.admin('PATCH', `/v1/webhooks/${webhook}`, { enabled: true });
  const dead = `replay --destination webhook:${webhook} --since 10m`;
  expect((await run(`${dead} --dry-run`)).stdout).toBe('would replay 2\n');
  const some = `${dead} --dry-run --submission dead-1 --type submission.*`;
  expect((await run(some)).stdout).toBe('would replay 1\n');
  expect(await run(dead)).toMatchObject({ code: 0, stdout: 'replayed 2\n' });
  await vi.waitFor(() => expect(receiver.requests).toHaveLength(4), { timeout: 15_000 });
});

describe('exits with 2 for', () => {
  it.each([
    ['replay', 'give either numbers, or both --destination and --since'],
    ['replay 999999', 'there is no delivery 999999'],
    ['list --limit 0', 'from 1 to 1000'],
  ])('%s', async (line, message) => {
    const { code, stdout, stderr } = await run(line);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});
