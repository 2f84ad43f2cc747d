import { expect, it } from 'vitest';
import type { ChatOptions } from '../../src/notifications/channels/channel.ts';
import { createNtfyChannel } from '../../src/notifications/channels/ntfy.ts';
import { describeChannel, expectEscaped } from './channel-conformance.ts';
import { httpRig, httpRigs } from './http-rigs.ts';
import { alertEvent, failedEvent, submissionEvent } from './sample-events.ts';

const SECRETS = { topic: 'dawatch-7Qm3xRw', token: 'tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2' };
const create = (options: ChatOptions) => createNtfyChannel({ ...SECRETS, ...options });

/** A longer message becomes an attachment, and a longer body is refused with 413. */
function expectWithinLimits(body: string): void {
  const { title, message } = JSON.parse(body);
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(8_192);
  expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4_096);
  expect(title).not.toContain('\n');
  expectEscaped(title);
  expectEscaped(message);
}

describeChannel('ntfy', {
  ...httpRigs(create),
  secrets: Object.values(SECRETS),
  messagesOfThree: 1,
  expectHarmless: expectWithinLimits,
});

it('publishes to the topic with the token, and stores neither from a response that repeats them', async () => {
  const { send, receiver } = await httpRig(create, ({ request, response }) =>
    response.writeHead(403).end(`${request.headers.authorization} ${SECRETS.topic}`),
  );
  const result = await send(failedEvent());
  expect(result).toMatchObject({ httpStatus: 403, response: 'Bearer [redacted] [redacted]' });
  const { headers, body } = receiver.requests[0] ?? expect.fail('nothing was sent');
  expect(headers.authorization).toBe(`Bearer ${SECRETS.token}`);
  expect(JSON.parse(body).topic).toBe(SECRETS.topic);
});

it('publishes without credentials, and shows the severity by priority and symbol', async () => {
  const { send, receiver } = await httpRig(({ url, post }) =>
    createNtfyChannel({ topic: SECRETS.topic, url, post, publicUrl: 'https://d.example' }),
  );
  const events = [
    submissionEvent('submission.finalized'),
    submissionEvent('submission.cancelled'),
    alertEvent('alert.raised'),
    failedEvent({ submissionId: 's-1' }),
  ];
  for (const event of events) await send(event);
  const sent = receiver.requests.map(({ body }) => JSON.parse(body));
  expect(receiver.requests[0]?.headers.authorization).toBeUndefined();
  expect(sent.map(({ priority, tags }) => [priority, ...tags])).toEqual([
    [3, 'white_check_mark'],
    [3, 'information_source'],
    [4, 'warning'],
    [5, 'rotating_light'],
  ]);
  expect(sent[3]).toMatchObject({
    title: 'Submission s-1 failed',
    click: 'https://d.example/#/submissions/s-1',
    message: expect.stringContaining('Error: TIMEOUT'),
  });
});
