import type { Message, Severity } from '../messages/message.ts';
import type { Channel, SendResult } from './channel.ts';
import { type ChatOptions, createChatChannel } from './chat.ts';

/** `url` is the whole one, with the key: `https://apprise.example/notify/<key>`. */
export type AppriseOptions = ChatOptions & {
  /** Only the services with this tag. */
  tag?: string;
};

const TYPES: Record<Severity, string> = { good: 'success', info: 'info', warning: 'warning', critical: 'failure' };

/** An Apprise API server, which passes it on to whatever is configured there. */
export function createAppriseChannel({ tag, ...options }: AppriseOptions): Channel {
  const toBody = ({ title, severity, text }: Message) => ({
    title: unmentioned(title),
    body: unmentioned(text),
    type: TYPES[severity],
    format: 'text',
    ...(tag !== undefined && { tag }),
  });
  return createChatChannel({ ...options, toBody, read: ofApprise });
}

/**
 * Where it ends up is not known here, so nothing can be escaped: some of the services behind Apprise take mentions out of
 * plain text. Characters that look alike keep it readable.
 */
function unmentioned(text: string): string {
  return text.replaceAll('@', '＠').replace(/<(?=[!#＠])/g, '‹');
}

/** Apprise answers 204 where nothing is configured to send to, and 424 where a service behind it failed. */
function ofApprise(result: SendResult): SendResult {
  if (result.httpStatus === 204)
    return { ...result, kind: 'failed', error: 'nothing is configured there that it could be sent to' };
  if (result.kind === 'failed' && result.httpStatus === 424)
    return { ...result, error: 'not every service behind it took the message (424)' };
  return result;
}
