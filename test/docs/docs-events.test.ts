import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createSigner } from '../../src/notifications/channels/webhook.ts';
import {
  type EventRecord,
  eventJsonSchema,
  MAX_EVENT_BYTES,
  toEventJson,
} from '../../src/notifications/event-body.ts';
import {
  AlertEventType,
  EVENT_TYPES,
  SubmissionEventType,
  TestEventType,
  UpstreamEventType,
} from '../../src/submissions/event-types.ts';
import { call } from '../support/app/http-calls.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';
import { finalEnvelope, PENDING_DATA, submission } from '../support/ledger/domain.ts';

const app = useApp();
const file = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../docs/events.schema.json'), 'utf8'),
);
const schema = z.fromJSONSchema(file);
const head = { seq: 7, id: 'evt_7', at: 1_767_323_045_123 };

function recordOf(type: (typeof EVENT_TYPES)[number], error: string | null = null): EventRecord {
  if (type === TestEventType.webhook) return { ...head, type, webhookId: 'wh_1' };
  if (type === TestEventType.channel) return { ...head, type, channel: 'ops' };
  if (isOneOf(UpstreamEventType, type))
    return { ...head, type, upstream: 'default', reason: 'HTTP 503' };
  if (isOneOf(AlertEventType, type)) {
    const alert = {
      id: 7,
      rule: 'stuck',
      subject: 'default',
      summary: '2 are stuck',
      count: 2,
      since: head.at,
    } as const;
    return { ...head, type, alert };
  }
  if (!isOneOf(SubmissionEventType, type)) throw new Error(`${type} is an unknown type`);
  return {
    ...head,
    type,
    submission: submission({
      status: 'finalized',
      upstreamState: 'Finalized',
      finalizedAt: head.at,
      envelope: JSON.stringify(finalEnvelope()),
      metadata: { order: 4711, nested: { list: [1, null] } },
      error,
    }),
    previous: {
      status: 'pending',
      upstreamState: 'Pending',
      error: null,
      envelope: JSON.stringify({ data: PENDING_DATA }),
    },
  };
}

function isOneOf<T extends string>(types: Record<string, T>, type: string): type is T {
  return Object.values<string>(types).includes(type);
}

it('docs/events.schema.json matches the code and the response of the server (npm run docs:events)', async () => {
  expect(file).toEqual(eventJsonSchema());
  const served = await call(app.url, '/events.schema.json', { headers: { 'x-api-key': [] } });
  expect([served.status, JSON.parse(served.text)]).toEqual([200, file]);
});

describe('the schema accepts', () => {
  it.each(EVENT_TYPES)('%s', (type) => {
    const event = JSON.parse(toEventJson(recordOf(type)));
    expect(schema.parse(event)).toEqual(event);
  });

  it('a truncated event, and an event with fields of a newer server', () => {
    const cut = JSON.parse(
      toEventJson(recordOf('submission.failing', 'x'.repeat(MAX_EVENT_BYTES))),
    );
    expect(cut.data.cut).toBe(true);
    for (const event of [cut, { ...cut, more: 1, data: { ...cut.data, more: 1 } }])
      expect(schema.safeParse(event).success).toBe(true);
  });
});

describe('the schema rejects', () => {
  it.each(EVENT_TYPES)('%s without any of its fields, or with another type', (type) => {
    const event = JSON.parse(toEventJson(recordOf(type)));
    const refused = (changed: object) => expect(schema.safeParse(changed).success).toBe(false);
    for (const name of Object.keys(event)) refused({ ...event, [name]: undefined });
    for (const name of Object.keys(event.data))
      refused({ ...event, data: { ...event.data, [name]: undefined } });
    refused({ ...event, type: 'submission.done' });
    refused({ ...event, timestamp: 'yesterday' });
    refused({ ...event, data: { ...event.data, sequence: '7' } });
  });
});

describe('the documents describe what a receiver parses:', () => {
  const textOf = (page: string) =>
    readFileSync(join(import.meta.dirname, '../../docs', page), 'utf8');

  it('every header of a webhook', () => {
    const sign = createSigner([`whsec_${Buffer.alloc(32).toString('base64')}`]);
    for (const name of Object.keys(sign({ id: 'evt_7', timestampS: 1, body: '{}' })))
      expect(textOf('webhooks.md')).toMatch(new RegExp(`^- \`${name}\`: .+$`, 'm'));
  });

  it('every field of a block of the live feed', async () => {
    await call(app.url, '/v1/submissions', { method: 'POST', body: { submission_id: 'a' } });
    await call(app.url, '/v1/submissions/a', { method: 'DELETE' });
    const headers = { 'x-api-key': API_KEY };
    const { body } = await fetch(`${app.url}/v1/events?after=0`, { headers });
    let received = '';
    for await (const chunk of body ?? []) {
      received += Buffer.from(chunk);
      if (/data: .*\n\n/.test(received)) break;
    }
    const block = received.split('\n\n').find((one) => one.includes('data:')) ?? '';
    const fields = block.split('\n').map((line) => line.split(':', 1)[0]);
    expect(fields).toEqual(['id', 'event', 'data']);
    const [, example = ''] = /```\n(id: [\s\S]+?)```/.exec(textOf('events.md')) ?? [];
    expect(example.match(/^\w+/gm)).toEqual(fields);
  });
});
