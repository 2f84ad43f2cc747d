import fc from 'fast-check';
import { expect, it } from 'vitest';
import { redactorOf } from '../../src/lib/text.ts';
import { escapedIn, reveals, secretText } from '../support/escapes.ts';

it('removes secrets from a text, in plain form and as JSON escapes them, the longest first', () => {
  const secrets = ['a-key"of\\mine', 'a-key"of\\mine-too'];
  const text = `no such key: ${secrets[1]}, ${JSON.stringify({ a: secrets[0] })}, a-key`;
  expect(redactorOf(secrets)(text)).toBe('no such key: [redacted], {"a":"[redacted]"}, a-key');
});

it.each([
  ['\\/', 'a-key\\/of&mine'],
  ['\\u002f', 'a-key\\u002fof\\u0026mine'],
  ['large digits', 'a-key\\u002Fof\\u0026mine'],
  [
    'every character',
    '\\u0061\\u002d\\u006b\\u0065\\u0079\\u002f\\u006F\\u0066\\u0026\\u006D\\u0069\\u006e\\u0065',
  ],
  ['JSON within JSON', 'a-key\\\\\\/of\\\\u0026mine'],
  ['a URL', 'a-key%2Fof%26mine'],
  ['a URL within a URL', 'a-key%252fof%2526mine'],
  ['HTML', 'a-key&#x2F;of&amp;mine'],
  ['Basic auth', Buffer.from('me:a-key/of&mine').toString('base64')],
])('in every escaping: %s', (_name, quoted) => {
  const body = `{"error":"no key ${quoted} here"}`;
  const redacted = redactorOf(['a-key/of&mine'])(body);
  expect(redacted).toMatch(/^\{"error":"no key \S{0,7}\[redacted\]\S{0,3} here"\}$/);
});

it('removes a random secret, escaped at random within random JSON, and leaves valid JSON', () => {
  const cases = secretText.chain((secret) =>
    fc.tuple(
      fc.constant(secret),
      escapedIn(secret),
      fc.json({ maxDepth: 3 }),
      fc.string(),
      fc.string(),
    ),
  );
  fc.assert(
    fc.property(cases, ([secret, quoted, json, before, after]) => {
      const [head, tail] = [before, after].map((text) => JSON.stringify(`${text} `).slice(1, -1));
      const body = `{"other":${json},"error":"${head}${quoted}${tail}","${quoted}":1}`;
      expect(reveals(body, secret)).toBe(true);
      const redacted = redactorOf([secret])(body);
      expect(reveals(redacted, secret)).toBe(false);
      expect(JSON.parse(redacted).other).toEqual(JSON.parse(json));
    }),
    { numRuns: 40 },
  );
});

it('takes time proportional to the length of the text, even of a hostile one', () => {
  const redact = redactorOf([
    `\\\\\\${'a\\'.repeat(20)}`,
    'aaaaaaaaaaaaaaaaaaaaaaab',
    '%25%25%25%25%25',
    '/+/+/+/+/+/+',
  ]);
  for (const piece of ['\\', 'a', '%25', '\\u005c', '&#92;', '\\\\a', '/+'])
    expect(redact(piece.repeat(20_000)).length).toBeGreaterThan(0);
});

it('leaves strings too short to be recognized as secrets', () => {
  expect(redactorOf(['key', ''])('a key')).toBe('a key');
});

it('leaves short digits and hashes, which are frequent in responses', () => {
  expect(redactorOf(['12345678', 'deadbeef'])('{"n":12345678,"h":"0xdeadbeef00"}')).toBe(
    '{"n":12345678,"h":"0xdeadbeef00"}',
  );
  expect(redactorOf(['0123456789abcdef'])('key 0123456789abcdef')).toBe('key [redacted]');
});
