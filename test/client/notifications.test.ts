import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import type { z } from 'zod';
import {
  DawatchClient,
  type Delivery,
  type DeliveryDetails,
  type FeedEvent,
  type NewWebhook,
  type Webhook,
  type WebhookPatch,
  type WebhookWithSecret,
} from '../../src/client/index.ts';
import type {
  deliveryDetailsSchema,
  deliverySchema,
} from '../../src/notifications/deliveries-routes.ts';
import type {
  newWebhookSchema,
  webhookPatchSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from '../../src/notifications/webhooks-routes.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { useNotifyingApp } from '../support/app/notifying-app.ts';
import { API_KEY } from '../support/app/running-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';

const app = useNotifyingApp();
const client = (token = ADMIN_TOKEN) => new DawatchClient({ url: app.url, apiKey: API_KEY, token });
const url = 'https://hooks.example.com/';

it("has the types of the server's requests and responses", () => {
  expectTypeOf<z.output<typeof webhookSchema>>().toExtend<Webhook>();
  expectTypeOf<z.output<typeof webhookWithSecretSchema>>().toExtend<WebhookWithSecret>();
  expectTypeOf<z.output<typeof deliverySchema>>().toExtend<Delivery>();
  expectTypeOf<z.output<typeof deliveryDetailsSchema>>().toExtend<DeliveryDetails>();
  expectTypeOf<Delivery>().toExtend<z.output<typeof deliverySchema>>();
  expectTypeOf<Webhook>().toExtend<z.output<typeof webhookSchema>>();
  expectTypeOf<keyof NewWebhook>().toEqualTypeOf<keyof z.input<typeof newWebhookSchema>>();
  expectTypeOf<keyof WebhookPatch>().toEqualTypeOf<keyof z.input<typeof webhookPatchSchema>>();
});

it('creates a webhook, shows it, changes it, rotates its secret and deletes it', async () => {
  const { webhooks } = client();
  const { secret, ...made } = await webhooks.create({
    url,
    types: ['*'],
    metadata: { team: 'billing' },
  });
  expect(secret).toMatch(/^whsec_/);
  expect(await webhooks.get(made.id)).toEqual(made);
  expect((await webhooks.list({ limit: 1 })).webhooks).toEqual([made]);
  expect((await webhooks.list()).webhooks.length).toBeGreaterThan(1);
  expect(await webhooks.update(made.id, { metadata: null })).toMatchObject({
    id: made.id,
    metadata: null,
    url,
  });
  const rotated = await webhooks.rotate(made.id, { keep_old_s: 0 });
  expect(rotated.secret).not.toBe(secret);
  expect(await webhooks.delete(made.id)).toBeUndefined();
  await expect(webhooks.get(made.id)).rejects.toMatchObject({ name: 'ApiError', status: 404 });
});

it('sends a test event, reads its delivery, and replays it', async () => {
  const receiver = await openReceiver([{ status: 500, body: 'not now' }, {}]);
  const { webhooks, deliveries } = client();
  const { id: webhook_id } = await webhooks.create({ url: receiver.url });
  const { id } = await webhooks.test(webhook_id);
  const attempts = (count: number) =>
    vi.waitFor(async () => expect((await deliveries.get(id)).attempts).toHaveLength(count), {
      timeout: 15_000,
    });
  await attempts(1);
  expect(await deliveries.get(id)).toMatchObject({
    state: 'waiting',
    event: { type: 'webhook.test', data: { webhook_id } },
    attempts: [{ http_status: 500, response: 'not now' }],
  });
  await webhooks.update(webhook_id, { enabled: false });
  expect((await deliveries.list({ webhook_id, state: 'dead' })).deliveries).toMatchObject([{ id }]);
  await webhooks.update(webhook_id, { enabled: true });
  const dead = { destination: `webhook:${webhook_id}`, since: '2020-01-01T00:00:00Z' };
  expect(await deliveries.replayDead(dead)).toEqual({ replayed: 1 });
  await attempts(2);
  expect(await deliveries.replay(id)).toMatchObject({ id, state: 'waiting' });
  await attempts(3);
  expect(receiver.requests).toHaveLength(3);
});

it('yields only events of submissions with matching metadata', async () => {
  const received: FeedEvent[] = [];
  await app.cancelled(['other'], { metadata: { team: 'other', n: 5 } });
  await app.cancelled(['mine'], { metadata: { team: 'bill&ing', n: 5 } });
  for await (const event of client().events({ after: 0, metadata: { team: 'bill&ing', n: 5 } })) {
    received.push(event);
    break;
  }
  expect(received).toMatchObject([{ data: { submission: { submission_id: 'mine' } } }]);
});

describe('throws an ApiError', () => {
  it('that reports an invalid address', async () => {
    const creating = client().webhooks.create({ url: 'https://10.0.0.1/' });
    await expect(creating).rejects.toMatchObject({
      name: 'ApiError',
      status: 400,
      errors: [{ pointer: '/url' }],
    });
  });

  it('if the token does not have the role admin', async () => {
    await expect(client(API_KEY).webhooks.list()).rejects.toMatchObject({
      name: 'ApiError',
      status: 403,
    });
    await expect(client(API_KEY).deliveries.list()).rejects.toMatchObject({
      name: 'ApiError',
      status: 403,
    });
  });
});
