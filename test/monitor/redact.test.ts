import { expect, it } from 'vitest';
import { redactorOf } from '../../src/monitor/redact.ts';

it('cuts secrets out of a text, as they are and as JSON writes them, the longest first', () => {
  const secrets = ['a-key"of\\mine', 'a-key"of\\mine-too'];
  const text = `no such key: ${secrets[1]}, ${JSON.stringify({ a: secrets[0] })}, a-key`;
  expect(redactorOf(secrets)(text)).toBe('no such key: [redacted], {"a":"[redacted]"}, a-key');
});

it('leaves what is so short that it may stand anywhere', () => {
  expect(redactorOf(['key', ''])('a key')).toBe('a key');
});

it('leaves short digits and hashes, which answers are full of', () => {
  expect(redactorOf(['12345678', 'deadbeef'])('{"n":12345678,"h":"0xdeadbeef00"}')).toBe(
    '{"n":12345678,"h":"0xdeadbeef00"}',
  );
  expect(redactorOf(['0123456789abcdef'])('key 0123456789abcdef')).toBe('key [redacted]');
});
