import { expect, it } from 'vitest';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import { familiesOf, reading, scrape } from '../support/app/metrics.ts';
import { appForTest } from '../support/app/running-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { eventually } from '../support/until.ts';

const ADMIN = 'an-admin-token-of-this-test-0123456789';

it('attempts are counted by kind and result, without addresses in labels', async () => {
  const [kind, failing, gone] = [
    await openReceiver(),
    await openReceiver({ status: 500 }),
    await openReceiver({ status: 410 }),
  ];
  const app = await appForTest({
    adminToken: ADMIN,
    webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
    channels: { ops: { type: 'apprise', url: kind.url } },
    routes: [{ types: ['submission.cancelled'], channels: ['ops'] }],
  });
  const headers = { authorization: `Bearer ${ADMIN}`, 'x-api-key': [] };
  const create = async (url: string) => {
    const body = { url, types: ['submission.cancelled'] };
    const { text } = await call(app.url, '/v1/webhooks', { method: 'POST', headers, body });
    return JSON.parse(text).id as string;
  };
  const working = await create(kind.url);
  await create(gone.url);
  await post(app.url, { submission_id: 'told', callback_url: failing.url });
  await call(app.url, pathOf('told'), { method: 'DELETE' });

  await eventually(async () => {
    const samples =
      familiesOf((await scrape(app.url)).text).get('dawatch_delivery_attempts_total')?.samples ??
      [];
    const counted = samples.map(({ labels, value }) => `${labels.kind} ${labels.result} ${value}`);
    expect(counted.toSorted()).toEqual([
      'apprise delivered 1',
      'callback retry 1',
      'webhook delivered 1',
      'webhook gone 1',
    ]);
  });
  const callbacks = { destination: 'webhook:callbacks' };
  // The counts from the ledger are cached for some milliseconds.
  const text = await eventually(async () => {
    const { text } = await scrape(app.url);
    expect(reading(text, 'dawatch_deliveries_waiting', callbacks)).toBe(1);
    expect(reading(text, 'dawatch_deliveries_dead')).toBe(1);
    return text;
  });
  expect(
    reading(text, 'dawatch_dead_letters_total', { kind: 'webhook', reason: 'endpoint_gone' }),
  ).toBe(1);
  expect(
    reading(text, 'dawatch_dead_letters_total', { kind: 'apprise', reason: 'attempts_used_up' }),
  ).toBe(0);
  expect(
    reading(text, 'dawatch_delivery_attempt_duration_seconds_count', { kind: 'webhook' }),
  ).toBe(2);
  for (const name of ['deliveries_oldest_waiting_age_seconds', 'receiver_failing_seconds']) {
    expect(reading(text, `dawatch_${name}`, callbacks)).toBeGreaterThan(0);
    expect(reading(text, `dawatch_${name}`, { destination: 'channel:ops' })).toBe(0);
  }
  // The webhook whose receiver is gone is disabled.
  const destinations = (metrics: string) =>
    familiesOf(metrics)
      .get('dawatch_receiver_failing_seconds')
      ?.samples.map(({ labels }) => labels.destination);
  expect(destinations(text)).toEqual(['webhook:callbacks', `webhook:${working}`, 'channel:ops']);
  expect(text).not.toContain('127.0.0.1');
  await call(app.url, `/v1/webhooks/${working}`, { method: 'DELETE', headers });
  await eventually(async () => {
    const { text } = await scrape(app.url);
    expect(destinations(text)).toEqual(['webhook:callbacks', 'channel:ops']);
  });
});
