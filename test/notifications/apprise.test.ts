import { expect, it } from 'vitest';
import { createAppriseChannel } from '../../src/notifications/channels/apprise.ts';
import { describeChannel, expectEscaped } from './channel-conformance.ts';
import { httpRig, httpRigs, URL_SECRET } from './http-rigs.ts';
import { alertEvent, failedEvent, submissionEvent, upstreamEvent } from './sample-events.ts';

function expectHarmless(message: string): void {
  const { title, body, format } = JSON.parse(message);
  expect(format).toBe('text');
  expect(title.length).toBeLessThanOrEqual(250);
  expect(body.length).toBeLessThanOrEqual(10_000);
  expect(title).not.toContain('\n');
  expectEscaped(title);
  expectEscaped(body);
  // No text that a service behind Apprise interprets as a mention.
  expect(`${title} ${body}`).not.toMatch(/@|<[!#]/);
}

describeChannel('Apprise', {
  ...httpRigs(createAppriseChannel),
  messagesOfThree: 1,
  expectHarmless,
});

it('posts to the configured URL', async () => {
  const { send, receiver } = await httpRig(createAppriseChannel);
  await send(failedEvent({ submissionId: 's-1' }));
  expect(receiver.requests[0]?.path).toBe(`/hooks/${URL_SECRET}`);
  expect(JSON.parse(receiver.requests[0]?.body ?? '')).toMatchObject({
    title: 'Submission s-1 failed',
    body: expect.stringContaining('Error: TIMEOUT'),
  });
});

it('maps the severity to the types of Apprise', async () => {
  const { send, receiver } = await httpRig(createAppriseChannel);
  const events = [
    submissionEvent('submission.finalized'),
    submissionEvent('submission.cancelled'),
    alertEvent('alert.raised'),
    upstreamEvent('upstream.down'),
  ];
  for (const event of events) await send(event);
  const sent = receiver.requests.map(({ body }) => JSON.parse(body));
  expect(sent.map(({ type }) => type)).toEqual(['success', 'info', 'warning', 'failure']);
});

it.each([
  [204, /no service to notify/],
  [424, /not all services/],
])('%d means that the delivery failed', async (status, error) => {
  const { send } = await httpRig(createAppriseChannel, { status });
  expect(await send(failedEvent())).toMatchObject({
    kind: 'failed',
    httpStatus: status,
    error: expect.stringMatching(error),
  });
});
