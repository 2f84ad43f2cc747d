import { expect, it } from 'vitest';
import type { Channel, ChatOptions } from '../../src/notifications/channels/channel.ts';
import { createPagerDutyChannel } from '../../src/notifications/channels/pagerduty.ts';
import type { EventRecord } from '../../src/notifications/event-body.ts';
import { openRealDispatcher } from '../support/virtual-time/virtual-dispatcher.ts';
import { describeChannel, expectEscaped } from './channel-conformance.ts';
import { httpRig, httpRigs, URL_SECRET } from './http-rigs.ts';
import { AT, alertEvent, failedEvent, submissionEvent, upstreamEvent } from './sample-events.ts';

const KEY = 'e93facc04764012d7bfb002500d5d1a6';
const create = (options: ChatOptions) => createPagerDutyChannel({ routingKey: KEY, ...options });
const ACCEPTED = { status: 202, body: '{"status":"success","message":"Event processed"}' };

/** 1,024 characters for the summary, 255 for the key, 512 kB for the event. */
function expectWithinLimits(message: string): void {
  const { dedup_key, payload } = JSON.parse(message);
  expect(Buffer.byteLength(message)).toBeLessThanOrEqual(512_000);
  expect(dedup_key.length).toBeLessThanOrEqual(255);
  expect(payload.summary.length).toBeLessThanOrEqual(1_024);
  for (const text of [payload.summary, ...Object.values<string>(payload.custom_details)])
    expectEscaped(text);
}

describeChannel('PagerDuty', {
  ...httpRigs(create),
  working: () => httpRig(create, ACCEPTED),
  secrets: [KEY, URL_SECRET],
  messagesOfThree: 1,
  expectHarmless: expectWithinLimits,
});

async function sent(...events: EventRecord[]) {
  const { send, receiver } = await httpRig(create, ACCEPTED);
  for (const event of events) await send(event);
  return receiver.requests.map(({ path, body }) => ({ path, ...JSON.parse(body) }));
}

/** Sends all events to the channel, with retries in virtual time. */
function openNight(channel: Channel) {
  const world = openRealDispatcher(channel);
  world.ledger.routes.setChannels([
    { name: 'night', subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 },
  ]);
  return world;
}

it('triggers an incident with the facts of the event', async () => {
  const [event] = await sent(failedEvent({ submissionId: 's-1' }));
  expect(event).toMatchObject({
    path: expect.stringMatching(/\/v2\/enqueue$/),
    routing_key: KEY,
    event_action: 'trigger',
    payload: {
      summary: 'Submission s-1 failed',
      severity: 'critical',
      source: 'dawatch',
      timestamp: '2026-01-02T03:10:00.000Z',
      class: 'submission.failed',
      custom_details: { Submission: 's-1', Error: 'TIMEOUT' },
    },
  });
});

it.each<[string, EventRecord, EventRecord]>([
  ['an alert', alertEvent('alert.raised'), alertEvent('alert.resolved')],
  ['an upstream', upstreamEvent('upstream.down'), upstreamEvent('upstream.up')],
  ['a submission', failedEvent(), submissionEvent('submission.finalized')],
])('resolves the incident of %s when its condition has ended', async (_, begun, ended) => {
  const [trigger, resolve] = await sent(begun, ended);
  expect([trigger.event_action, resolve.event_action]).toEqual(['trigger', 'resolve']);
  expect(resolve.dedup_key).toBe(trigger.dedup_key);
});

it('triggers nothing for a condition that had ended, and keeps alerts apart', async () => {
  const [ended, other] = await sent(
    { ...alertEvent('alert.raised'), endedAt: AT },
    alertEvent('alert.raised', { id: 8 }),
  );
  expect(ended.event_action).toBe('resolve');
  expect(ended.dedup_key).not.toBe(other.dedup_key);
});

it('does not resolve the incident of an outage by a late event of the one before', async () => {
  const [current, late] = await sent(upstreamEvent('upstream.down'), {
    ...upstreamEvent('upstream.down'),
    endedAt: AT,
  });
  expect(late.event_action).toBe('resolve');
  expect(late.dedup_key).not.toBe(current.dedup_key);
});

it('does not resolve the incident of an outage by a late end of the one before', async () => {
  const refused = { status: 500 };
  const { channel, receiver } = await httpRig(create, [ACCEPTED, refused, ACCEPTED, ACCEPTED]);
  const world = openNight(channel);
  for (const state of ['down', 'up', 'down'] as const) {
    world.turn(state);
    await world.clock.advance(1_000);
  }
  await world.clock.advance(60_000);
  const sent = receiver.requests.map(({ body }) => JSON.parse(body));
  expect(sent.map(({ payload }) => payload.class)).toEqual([
    ...['upstream.down', 'upstream.up', 'upstream.down', 'upstream.up'],
  ]);
  expect(sent[3].dedup_key).not.toBe(sent[2].dedup_key);
});

it('leaves no incident open if the failure of a submission arrives after its end', async () => {
  const { channel, receiver } = await httpRig(create, [{ status: 500 }, ACCEPTED, ACCEPTED]);
  const world = openNight(channel);
  world.finalize('s-1', { kind: 'error' });
  await world.clock.advance(1_000);
  world.finalize('s-1');
  await world.clock.advance(60_000);
  const sent = receiver.requests.map(({ body }) => JSON.parse(body));
  expect(sent.map(({ event_action, payload }) => [event_action, payload.class])).toEqual([
    ['trigger', 'submission.failing'],
    ['resolve', 'submission.finalized'],
    ['resolve', 'submission.failing'],
  ]);
});

it('triggers a test', async () => {
  const [test] = await sent({ seq: 1, id: 'evt_1', at: AT, type: 'channel.test', channel: 'ops' });
  expect(test).toMatchObject({ event_action: 'trigger', payload: { severity: 'info' } });
});

it('stores no response that repeats the key', async () => {
  const { send } = await httpRig(create, ({ request, response }) =>
    response.writeHead(400).end(`invalid event: ${KEY} ${request.url}`),
  );
  const result = await send(failedEvent());
  expect(result).toMatchObject({ httpStatus: 400, refused: true });
  expect(JSON.stringify(result)).not.toContain(KEY);
});
