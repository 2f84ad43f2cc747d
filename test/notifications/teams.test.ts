import { expect, it } from 'vitest';
import { createTeamsChannel } from '../../src/notifications/channels/teams.ts';
import { describeChannel, expectEscaped } from './channel-conformance.ts';
import { httpRig, httpRigs } from './http-rigs.ts';
import { failedEvent } from './sample-events.ts';

type Block = { type: string; text: string; color?: string; wrap: boolean };
type TeamsBody = {
  type: string;
  attachments: {
    contentType: string;
    content: { type: string; version: string; body: Block[]; msteams: unknown };
  }[];
};

/** 28 kB for the whole message; a mention would require an entity in addition to its text. */
function expectWithinLimits(message: string): void {
  expect(Buffer.byteLength(message)).toBeLessThanOrEqual(28_000);
  const { type, attachments } = JSON.parse(message) as TeamsBody;
  expect(type).toBe('message');
  expect(attachments).toMatchObject([
    {
      contentType: 'application/vnd.microsoft.card.adaptive',
      content: { type: 'AdaptiveCard', version: '1.4' },
    },
  ]);
  const { body, msteams } = (attachments[0] as TeamsBody['attachments'][0]).content;
  expect(msteams).toEqual({ width: 'Full' });
  expect(body.length).toBeGreaterThan(1);
  for (const { type, text } of body) {
    expect(type).toBe('TextBlock');
    expect(text).toMatch(/^(?:\*\*[\w' ]+:\*\* |• |\w)/);
    expect(text).not.toMatch(/^\d+[.)]/);
    const bare = text.replace(/^\*\*[\w' ]+:\*\* /, '').replace(/\\./g, '');
    expect(bare).not.toMatch(/[\\*_`[\]()<>#~|&]/);
    expect(bare).not.toContain('\n');
    expectEscaped(bare);
  }
}

describeChannel('Teams', {
  ...httpRigs(createTeamsChannel),
  messagesOfThree: 1,
  expectHarmless: expectWithinLimits,
});

it('shows Teams a card with the title in the colour of its severity and every fact below it', async () => {
  const { send, receiver } = await httpRig(createTeamsChannel);
  await send(failedEvent({ submissionId: 'a_b', error: '[x](y)' }));
  const { attachments } = JSON.parse(receiver.requests[0]?.body ?? '') as TeamsBody;
  const [title, ...facts] = attachments[0]?.content.body ?? [];
  expect(title).toMatchObject({ text: 'Submission a\\_b failed', color: 'Attention', wrap: true });
  expect(facts.map(({ text }) => text)).toContain('**Error:** \\[x\\]\\(y\\)');
});
