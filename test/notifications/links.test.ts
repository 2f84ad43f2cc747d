import { describe, expect, it } from 'vitest';
import { createAppriseChannel } from '../../src/notifications/channels/apprise.ts';
import type { Channel, ChatOptions } from '../../src/notifications/channels/channel.ts';
import { createDiscordChannel } from '../../src/notifications/channels/discord.ts';
import { createSlackChannel } from '../../src/notifications/channels/slack.ts';
import { createTeamsChannel } from '../../src/notifications/channels/teams.ts';
import { linkTo, submissionPath, toMessage } from '../../src/notifications/message.ts';
import { alertEvent, failedEvent, outgoing, upstreamEvent } from './sample-events.ts';

const BASE = 'https://dawatch.example.com/ops';
const CHANNELS: [string, (options: ChatOptions) => Channel, string][] = [
  ['Slack', createSlackChannel, `<${BASE}/#/submissions/s1|Open in dawatch>`],
  ['Discord', createDiscordChannel, `"url":"${BASE}/#/submissions/s1"`],
  ['Teams', createTeamsChannel, `[Open in dawatch](${BASE}/#/submissions/s1)`],
  ['Apprise', createAppriseChannel, `\\n\\n${BASE}/#/submissions/s1`],
];

async function bodyOf(
  create: (options: ChatOptions) => Channel,
  publicUrl?: string,
): Promise<string> {
  const bodies: string[] = [];
  const channel = create({
    url: 'https://chat.example/',
    post: async ({ body }) => {
      bodies.push(body);
      return { kind: 'response', httpStatus: 200, retryAfterMs: null, response: null };
    },
    publicUrl,
  });
  await channel.send([outgoing(failedEvent({ submissionId: 's1' }))], new AbortController().signal);
  return bodies.join();
}

describe('a message', () => {
  it.each(CHANNELS)(
    'to %s has a link to the page about it if the server has a public address',
    async (...test) => {
      const [, create, link] = test;
      expect(await bodyOf(create, BASE)).toContain(link);
      expect(await bodyOf(create)).not.toMatch(/Open in dawatch|#\/submissions/);
    },
  );

  it('about several events links to the page about all of them', () => {
    const linkOf = (...batch: Parameters<typeof toMessage>[0]) => toMessage(batch, BASE).link;
    expect(linkOf(failedEvent({ submissionId: 'a' }), failedEvent({ submissionId: 'b' }))).toBe(
      `${BASE}/#/submissions`,
    );
    expect(linkOf(failedEvent({ submissionId: 'a' }), failedEvent({ submissionId: 'a' }))).toBe(
      `${BASE}/#/submissions/a`,
    );
    expect(
      linkOf(alertEvent('alert.raised', { rule: 'backlog' }), alertEvent('alert.raised')),
    ).toBe(`${BASE}/#/alerts`);
    const link = `${BASE}/#/deliveries?state=waiting`;
    expect(linkOf(alertEvent('alert.raised', { link }))).toBe(link);
    expect(linkOf(upstreamEvent('upstream.down'))).toBe(`${BASE}/#/pacing`);
  });
});

describe('a link to the dashboard', () => {
  it('contains no character that ends a link in the markup of a chat service', () => {
    const id = `a b|c>d)e]f*g"h'i<j(k[l!m/n?o#p&q%r`;
    const link = linkTo('https://example.com/(ops)|x', submissionPath(id));
    expect(link).not.toMatch(/[|<>()[\]"'*!\s]/);
    expect(decodeURIComponent(link.slice(link.lastIndexOf('/') + 1))).toBe(id);
    expect(submissionPath('lone \ud83d')).toBe('#/submissions/lone%20%EF%BF%BD');
  });
});
