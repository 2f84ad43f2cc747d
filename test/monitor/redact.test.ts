import { expect, it } from 'vitest';
import { redact } from '../../src/monitor/redact.ts';

it('cuts secrets out of a text, as they are and as JSON writes them, the longest first', () => {
  const secrets = ['a-key"of\\mine', 'a-key"of\\mine-too'];
  const text = `no such key: ${secrets[1]}, ${JSON.stringify({ a: secrets[0] })}, a-key`;
  expect(redact(text, secrets)).toBe('no such key: [redacted], {"a":"[redacted]"}, a-key');
});

it('leaves what is so short that it may stand anywhere', () => {
  expect(redact('a key', ['key', ''])).toBe('a key');
});

it('leaves short digits and hashes, which answers are full of', () => {
  expect(redact('{"n":12345678,"h":"0xdeadbeef00"}', ['12345678', 'deadbeef'])).toBe(
    '{"n":12345678,"h":"0xdeadbeef00"}',
  );
  expect(redact('key 0123456789abcdef', ['0123456789abcdef'])).toBe('key [redacted]');
});
