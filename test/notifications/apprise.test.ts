import { expect, it } from 'vitest';
import { createAppriseChannel } from '../../src/notifications/channels/apprise.ts';
import { describeChannel, expectEscaped } from './channel-conformance.ts';
import { httpRig, httpRigs, URL_SECRET } from './http-rigs.ts';
import {
  alertEvent,
  failedEvent,
  outgoing,
  submissionEvent,
  upstreamEvent,
} from './sample-events.ts';

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
  const { channel, receiver } = await httpRig(createAppriseChannel);
  await channel.send(
    [outgoing(failedEvent({ submissionId: 's-1' }))],
    new AbortController().signal,
  );
  expect(receiver.requests[0]?.path).toBe(`/hooks/${URL_SECRET}`);
  expect(JSON.parse(receiver.requests[0]?.body ?? '')).toMatchObject({
    title: 'Submission s-1 failed',
    body: expect.stringContaining('Error: TIMEOUT'),
  });
});

it('maps the severity to the types of Apprise', async () => {
  const { channel, receiver } = await httpRig(createAppriseChannel);
  const events = [
    submissionEvent('submission.finalized'),
    submissionEvent('submission.cancelled'),
    alertEvent('alert.raised'),
    upstreamEvent('upstream.down'),
  ];
  for (const event of events) await channel.send([outgoing(event)], new AbortController().signal);
  const sent = receiver.requests.map(({ body }) => JSON.parse(body));
  expect(sent.map(({ type }) => type)).toEqual(['success', 'info', 'warning', 'failure']);
});

it.each([
  [204, /no service to notify/],
  [424, /not all services/],
])('%d means that the delivery failed', async (status, error) => {
  const { channel } = await httpRig(createAppriseChannel, { status });
  const result = await channel.send([outgoing(failedEvent())], new AbortController().signal);
  expect(result).toMatchObject({
    kind: 'failed',
    httpStatus: status,
    error: expect.stringMatching(error),
  });
});
