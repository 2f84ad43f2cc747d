import { expect, it } from 'vitest';
import { createSlackChannel } from '../../src/notifications/channels/slack.ts';
import { describeChannel, expectEscaped } from './channel-conformance.ts';
import { httpRig, httpRigs } from './http-rigs.ts';
import { failedEvent } from './sample-events.ts';

type SlackBody = {
  text: string;
  blocks: { type: string; text: { type: string; text: string; verbatim: boolean } }[];
  unfurl_links: boolean;
};

/** The limits from https://docs.slack.dev/reference/block-kit/blocks. */
function expectWithinLimits(message: string): void {
  const { text, blocks } = JSON.parse(message) as SlackBody;
  expect(blocks.length).toBeLessThanOrEqual(50);
  for (const each of [text, ...blocks.map((block) => block.text.text)]) {
    expect(each.length).toBeGreaterThan(0);
    expect(each.length).toBeLessThanOrEqual(3_000);
    expect(each).not.toMatch(/[<>]/);
    expect(each).not.toMatch(/&(?!amp;|lt;|gt;)/);
    expectEscaped(each);
  }
  for (const { text: shown } of blocks)
    expect(shown).toMatchObject({ type: 'mrkdwn', verbatim: true });
  // A value is a single code span without other formatting.
  for (const { text: shown } of blocks.slice(1))
    expect(shown.text).toMatch(/^(?:\*[\w' ]+\* )?`[^`\n]+`$/);
}

describeChannel('Slack', {
  ...httpRigs(createSlackChannel),
  messagesOfThree: 1,
  expectHarmless: expectWithinLimits,
});

it('shows Slack the title with a symbol, a line for every fact, and a text for notifications', async () => {
  const { send, receiver } = await httpRig(createSlackChannel);
  await send(failedEvent({ submissionId: 's-1', error: 'a < b & `c`' }));
  const [request] = receiver.requests;
  const { text, blocks, unfurl_links } = JSON.parse(request?.body ?? '') as SlackBody;
  expect(request).toMatchObject({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  });
  expect(blocks[0]?.text.text).toBe('🚨 Submission s-1 failed');
  expect(blocks.map((block) => block.text.text)).toContain("*Error* `a &lt; b &amp; 'c'`");
  expect(text).toMatch(
    /^🚨 Submission s-1 failed\n\nSubmission: s-1\nStatus: failed \(was failing\)\n/,
  );
  expect(unfurl_links).toBe(false);
});
