import { expect, it } from 'vitest';
import { explain } from '../../src/cli/exit.ts';
import { ApiError, ConnectionError } from '../../src/client/errors.ts';
import { ConfigError } from '../../src/operations/config/load.ts';

const api = (status: number) => new ApiError({ status, title: 'Refused', detail: 'so' });
const listening = (code: string, address = '127.0.0.1') =>
  Object.assign(new Error(`listen ${code}: words of the system`), {
    code,
    syscall: 'listen',
    address,
    port: 80,
  });
const lookup = Object.assign(new Error('getaddrinfo ENOTFOUND nowhere'), {
  code: 'ENOTFOUND',
  syscall: 'getaddrinfo',
  hostname: 'nowhere',
});

const lost = (details = {}) => new ConnectionError('no response from there', details);
const TLS = { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' };
const settings = new ConfigError(['server.port: odd']);

it.each<[string, unknown, string, number, RegExp]>([
  ['a refused key', api(401), 'status', 5, /token create --role …/],
  ['an insufficient role', api(403), 'track', 5, /token create --role …/],
  ['an unknown submission', api(404), 'status', 2, /`dawatch track`/],
  ['no server', lost(), 'list', 5, /`dawatch serve`.*--server or DAWATCH_URL/],
  ['an untrusted certificate', lost(TLS), 'list', 5, /NODE_EXTRA_CA_CERTS/],
  ['a proxy', new ConnectionError('HTTP 413', { status: 413 }), 'track', 5, /^HTTP 413$/],
  ['another server', lost({ status: 404 }), 'list', 5, /DAWATCH_URL/],
  ['invalid settings', settings, 'serve', 2, /`dawatch help settings`.*DAWATCH_CONFIG/],
])('%s: explains the next step', (_what, error, command, exitCode, advice) => {
  const explained = explain(error, command);
  expect(explained).toEqual({ exitCode, message: expect.stringMatching(advice) });
  expect(explained.message).toContain((error as Error).message);
});

it.each<[string, Error, string]>([
  ['sandbox', listening('EADDRINUSE', '::1'), 'cannot listen on [::1]:80: the port is in use; '],
  ['sandbox', lookup, 'on nowhere: the name cannot be resolved; set another with --host'],
])('%s that cannot listen reports the cause and the setting: %o', (command, error, message) => {
  const explained = explain(error, command);
  expect(explained).toEqual({ exitCode: 2, message: expect.stringContaining(message) });
});

it('adds no advice to a message that contains it', () => {
  expect(explain(api(429), 'status')).toEqual({ exitCode: 2, message: 'Refused: so' });
  expect(explain(api(400), 'status').message).toBe('Refused: so');
  expect(explain(Object.assign(new Error('odd'), { code: 'EODD' }), 'serve').message).toBe('odd');
});
