import { z } from 'zod';
import { apprise } from './apprise.ts';
import type { ChannelType } from './channel.ts';
import { discord } from './discord.ts';
import { email } from './email.ts';
import { ntfy } from './ntfy.ts';
import { pagerduty } from './pagerduty.ts';
import { slack } from './slack.ts';
import { teams } from './teams.ts';
import { telegram } from './telegram.ts';

const CHANNEL_TYPES = [slack, discord, teams, telegram, ntfy, pagerduty, apprise, email] as const;

export type ChannelConfig = z.output<(typeof CHANNEL_TYPES)[number]['settings']>;

export const TYPE_NAMES = CHANNEL_TYPES.map(({ type }) => type).join(', ');

export const channelSchema = z.discriminatedUnion(
  'type',
  CHANNEL_TYPES.map(({ settings }) => settings) as never,
  `must be one of ${TYPE_NAMES}`,
) as unknown as z.ZodType<ChannelConfig>;

export function channelTypeOf({ type }: ChannelConfig): ChannelType<ChannelConfig> {
  return CHANNEL_TYPES.find((one) => one.type === type) as unknown as ChannelType<ChannelConfig>;
}
