import { expect, it } from 'vitest';
import { explain } from '../../src/cli/exit.ts';
import { ApiError, ConnectionError } from '../../src/client/errors.ts';
import { ConfigError } from '../../src/config.ts';

const api = (status: number) => new ApiError({ status, title: 'Refused', detail: 'so' });
const system = (code: string) => Object.assign(new Error(`listen ${code}`), { code });

it.each<[string, unknown, string, number, RegExp]>([
  ['a refused key', api(401), 'status', 5, /token create --role service/],
  ['a role that may not', api(403), 'track', 5, /token create --role service/],
  ['an unknown submission', api(404), 'status', 2, /`dawatch track`/],
  ['an unknown webhook', api(404), 'webhooks', 2, /`dawatch webhooks list`/],
  ['an unknown delivery', api(404), 'deliveries', 2, /`dawatch deliveries list`/],
  ['too many requests', api(429), 'status', 2, /try again in a minute/],
  ['no server', new ConnectionError('no answer from there'), 'top', 5, /`dawatch serve`.*--server or DAWATCH_URL/],
  [
    'settings that are not usable',
    new ConfigError(['server.port: odd']),
    'serve',
    2,
    /config\/dawatch\.yaml.*DAWATCH_CONFIG/,
  ],
  ['a port in use', system('EADDRINUSE'), 'serve', 2, /another port/],
  ['a port that may not be used', system('EACCES'), 'serve', 2, /from 1024 up/],
])('%s: says what to do next', (_what, error, command, exitCode, advice) => {
  const explained = explain(error, command);
  expect(explained).toEqual({ exitCode, message: expect.stringMatching(advice) });
  expect(explained.message).toContain((error as Error).message);
});

it('has nothing to add to what says it already', () => {
  expect(explain(api(400), 'status').message).toBe('Refused: so');
  expect(explain(system('EODD'), 'serve').message).toBe('listen EODD');
});
