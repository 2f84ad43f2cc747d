import { z } from 'zod';
import { httpUrl } from '../../operations/config/section-values.ts';
import type { Message, Severity } from '../message.ts';
import {
  type Channel,
  type ChannelType,
  type ChatOptions,
  createChatChannel,
  type SendResult,
} from './channel.ts';

const TYPES: Record<Severity, string> = {
  good: 'success',
  info: 'info',
  warning: 'warning',
  critical: 'failure',
};

/** `url` includes the configuration key: `https://apprise.example/notify/<key>`. */
export function createAppriseChannel(options: ChatOptions): Channel {
  const toBody = ({ title, severity, body }: Message) => ({
    title: unmentioned(title),
    body: unmentioned(body),
    type: TYPES[severity],
    format: 'text',
  });
  return createChatChannel({ ...options, toBody, read: ofApprise });
}

/** Mentions cannot be escaped: some services behind Apprise parse them in plain text. */
function unmentioned(text: string): string {
  return text.replaceAll('@', '＠').replace(/<(?=[!#＠])/g, '‹');
}

/** Apprise responds with 204 if no service is configured, and with 424 if a service failed. */
function ofApprise(result: SendResult): SendResult {
  if (result.httpStatus === 204)
    return {
      ...result,
      kind: 'failed',
      error: 'the Apprise configuration has no service to notify',
    };
  if (result.kind === 'failed' && result.httpStatus === 424)
    return {
      ...result,
      error: 'not all services of the Apprise server accepted the message (424)',
    };
  return result;
}

const settings = z.strictObject({
  type: z.literal('apprise'),
  url: httpUrl.describe('Notify address of an Apprise API: http://apprise:8000/notify/<key>'),
});

export const apprise: ChannelType<z.output<typeof settings>> = {
  type: 'apprise',
  settings,
  address: ({ url }) => url,
  create: ({ url }, deps) => createAppriseChannel({ url, ...deps }),
};
