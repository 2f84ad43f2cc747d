import { expect, it } from 'vitest';
import { useNotifyingApp } from '../support/app/notifying-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { eventually, until } from '../support/until.ts';

const app = useNotifyingApp({ tuning: { alertCheckMs: 3_600_000 } });
const types = ['submission.cancelled'];

/** A receiver whose responses the test sends later. */
async function openSlowReceiver() {
  const held: (() => void)[] = [];
  let status = 200;
  let headers = {};
  const receiver = await openReceiver(({ response }) => {
    held.push(() => response.writeHead(status, headers).end());
  });
  return {
    url: receiver.url,
    called: () => until(() => held.length > 0),
    respond(withStatus: number, withHeaders: Record<string, string> = {}): void {
      [status, headers] = [withStatus, withHeaders];
      for (const each of held.splice(0)) each();
    },
  };
}

const attempted = (destination: string, count: number) =>
  eventually(async () => {
    const [delivery] = await app.deliveries(`destination=${destination}`);
    const { attempts, state } = await app.details(delivery?.id ?? 0);
    expect(attempts).toHaveLength(count);
    return { attempts, state };
  });

it.each([[410, {}] as const, [429, { 'retry-after': '3600' }] as const])(
  'a late %i from the old address of a webhook counts for nothing: the new address gets the event at once',
  async (status, headers) => {
    const before = await openSlowReceiver();
    const after = await openReceiver();
    const { id } = await app.create({ url: before.url, types });
    await app.cancelled([`moved-${status}`]);
    await before.called();
    await app.admin('PATCH', `/v1/webhooks/${id}`, { url: after.url });
    before.respond(status, headers);
    const { attempts, state } = await attempted(`webhook:${id}`, 2);
    expect(attempts.map(({ http_status }) => http_status)).toEqual([status, 200]);
    expect(state).toBe('delivered');
    const { text } = await app.admin('GET', `/v1/webhooks/${id}`);
    expect(JSON.parse(text)).toMatchObject({ enabled: true, failing_since: null });
  },
);

it('a new address ends the pause that the old one requested', async () => {
  const before = await openReceiver({ status: 429, headers: { 'retry-after': '3600' } });
  const after = await openReceiver();
  const { id } = await app.create({ url: before.url, types });
  await app.cancelled(['paused-1']);
  await attempted(`webhook:${id}`, 1);
  await app.admin('PATCH', `/v1/webhooks/${id}`, { url: after.url });
  await app.cancelled(['paused-2']);
  await until(() => after.requests.length > 0);
});

it('what waits for a callback is discarded when the callback is removed', async () => {
  const receiver = await openReceiver({ status: 500 });
  await app.cancelled(['removed'], { callback_url: receiver.url });
  const destination = `callback:${receiver.url}`;
  await attempted(destination, 1);
  await app.admin('PATCH', '/v1/submissions/removed', { callback_url: null });
  expect(await app.deliveries(`destination=${destination}`)).toMatchObject([
    { state: 'discarded' },
  ]);
});

it('a late 410 from the old address of a callback does not end its delivery', async () => {
  const before = await openSlowReceiver();
  const after = await openReceiver();
  await app.cancelled(['called-back'], { callback_url: before.url });
  await before.called();
  const { status } = await app.admin('PATCH', '/v1/submissions/called-back', {
    callback_url: after.url,
  });
  expect(status).toBe(200);
  await until(() => after.requests.length > 0);
  before.respond(410);
  const destination = `callback:${after.url}`;
  await attempted(destination, 2);
  expect(await app.deliveries(`destination=${destination}`)).toMatchObject([
    { state: 'delivered' },
  ]);
});
