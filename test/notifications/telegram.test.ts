import { expect, it } from 'vitest';
import type { ChatOptions } from '../../src/notifications/channels/channel.ts';
import { createTelegramChannel } from '../../src/notifications/channels/telegram.ts';
import { describeChannel, expectEscaped } from './channel-conformance.ts';
import { httpRig, httpRigs } from './http-rigs.ts';
import { failedEvent } from './sample-events.ts';

const TOKEN = '123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw';
const create = (options: ChatOptions) =>
  createTelegramChannel({ token: TOKEN, chatId: -100_123, ...options });
const SENT = { body: '{"ok":true,"result":{"message_id":7}}' };

function expectHarmless(message: string): void {
  const { text, parse_mode, link_preview_options } = JSON.parse(message);
  expect(parse_mode).toBeUndefined();
  expect(link_preview_options).toEqual({ is_disabled: true });
  expect(text.length).toBeLessThanOrEqual(4_096);
  expect(text).not.toContain('@');
  expectEscaped(text);
}

describeChannel('Telegram', {
  ...httpRigs(create),
  working: () => httpRig(create, SENT),
  secrets: [TOKEN, TOKEN.slice(7)],
  messagesOfThree: 1,
  expectHarmless,
});

it('sends the text to the chat, by the method of its bot', async () => {
  const { send, receiver } = await httpRig(create, SENT);
  await send(failedEvent({ submissionId: 's-1' }));
  const { path, body } = receiver.requests[0] ?? expect.fail('nothing was sent');
  expect(path).toMatch(new RegExp(`/bot${TOKEN}/sendMessage$`));
  expect(JSON.parse(body)).toMatchObject({
    chat_id: -100_123,
    text: expect.stringMatching(/^Submission s-1 failed\n\nSubmission: s-1\n/),
  });
});

it.each([
  ['a 200 that reports a failure', 200, '{"ok":false,"error_code":400}', { error: /not confirm/ }],
  ['a page of a proxy', 200, '<html>Sign in</html>', { error: /not confirm/ }],
  [
    'a request for a pause',
    429,
    '{"ok":false,"error_code":429,"parameters":{"retry_after":34}}',
    { error: /429/, slowDown: { retryAfterMs: 34_000 } },
  ],
  [
    'a group with a new number',
    400,
    '{"ok":false,"error_code":400,"parameters":{"migrate_to_chat_id":-1001234567890}}',
    { error: /set chat_id to -1001234567890/ },
  ],
  [
    'a response that repeats the token',
    404,
    `{"ok":false,"description":"Not Found: /bot${TOKEN}/sendMessage"}`,
    { error: /404/, response: /^[^:]*:false,"description":"Not Found: \/\[redacted]/ },
  ],
])('%s is a failure', async (_, status, body, { error, ...others }) => {
  const { send } = await httpRig(create, { status, body });
  const result = await send(failedEvent());
  expect(result).toMatchObject({
    kind: 'failed',
    httpStatus: status,
    error: expect.stringMatching(error),
    ...('response' in others ? { response: expect.stringMatching(others.response) } : others),
  });
  expect(JSON.stringify(result)).not.toContain(TOKEN.slice(7));
});
