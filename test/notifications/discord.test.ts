import { expect, it } from 'vitest';
import { createDiscordChannel } from '../../src/notifications/channels/discord.ts';
import { describeChannel, expectEscaped } from './channel-conformance.ts';
import { httpRig, httpRigs } from './http-rigs.ts';
import { failedEvent, submissionEvent } from './sample-events.ts';

type DiscordBody = {
  content?: string;
  embeds: {
    title: string;
    color: number;
    fields: { name: string; value: string; inline: boolean }[];
  }[];
  allowed_mentions: unknown;
};

/** From https://discord.com/developers/docs/resources/message#embed-object-embed-limits. */
function expectWithinLimits(message: string): void {
  const { content, embeds, allowed_mentions } = JSON.parse(message) as DiscordBody;
  expect(content).toBeUndefined();
  expect(allowed_mentions).toEqual({ parse: [] });
  expect(embeds).toHaveLength(1);
  const { title, fields } = embeds[0] as DiscordBody['embeds'][0];
  expect(title.length).toBeLessThanOrEqual(256);
  // Every markup character has a backslash before it.
  expect(title.replace(/\\./g, '')).not.toMatch(/[*_~`|<>[\]()#@:]/);
  expect(fields.length).toBeGreaterThan(0);
  expect(fields.length).toBeLessThanOrEqual(25);
  for (const { name, value } of fields) {
    expect(name.length).toBeGreaterThan(0);
    expect(value.length).toBeLessThanOrEqual(1_024);
    expect(value).toMatch(/^`[^`\n]+`$/);
    expectEscaped(value);
  }
  const all = [title, ...fields.flatMap(({ name, value }) => [name, value])].join('');
  expect(all.length).toBeLessThanOrEqual(6_000);
  expectEscaped(title);
}

describeChannel('Discord', {
  ...httpRigs(createDiscordChannel),
  messagesOfThree: 1,
  expectHarmless: expectWithinLimits,
});

it('colours failures differently from finalizations, and escapes the title', async () => {
  const { send, receiver } = await httpRig(createDiscordChannel);
  await send(failedEvent({ submissionId: '*a*' }));
  await send(submissionEvent('submission.finalized'));
  const [failed, final] = receiver.requests.map(
    ({ body }) => (JSON.parse(body) as DiscordBody).embeds[0],
  );
  expect(failed?.title).toBe('Submission \\*a\\* failed');
  expect(failed?.fields).toContainEqual({ name: 'Error', value: '`TIMEOUT`', inline: true });
  expect(failed?.color).not.toBe(final?.color);
});

it('requests a confirmation from Discord, and keeps the other parameters of the address', async () => {
  const create: typeof createDiscordChannel = ({ url, post }) =>
    createDiscordChannel({ url: `${url}?thread_id=5`, post });
  const { send, receiver } = await httpRig(create);
  await send(failedEvent());
  expect(receiver.requests[0]?.path).toMatch(/\?thread_id=5&wait=true$/);
});
