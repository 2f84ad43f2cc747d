import { beforeEach, describe, expect, it } from 'vitest';
import { call, pathOf, problemOf, sendRaw } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const lines: Record<string, unknown>[] = [];
const app = useApp({ logLevel: 'debug', onLog: (line) => lines.push(JSON.parse(line)) });
beforeEach(() => {
  lines.length = 0;
});
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const named = (id: string, path: string) =>
  call(app.url, path, { headers: { 'x-request-id': id } });
/** The last line is written after the response was sent. */
async function linesOf(id: unknown) {
  const found = () => lines.filter(({ request_id }) => request_id === id);
  await expect.poll(() => found().at(-1)?.event).toBe('http.responded');
  return found();
}

describe('every response has its request id', () => {
  it.each<[string, number, string, object]>([
    ['an answer', 200, '/v1/submissions', {}],
    ['an invalid request', 400, '/v1/submissions?limit=x', {}],
    ['a request without access', 401, '/v1/submissions', { headers: { 'x-api-key': [] } }],
    ['a path that cannot be decoded', 400, '/v1/submissions/%zz', {}],
  ])('%s', async (_, status, path, options) => {
    const response = await call(app.url, path, options);
    expect([response.status, response.headers['x-request-id']]).toEqual([
      status,
      expect.stringMatching(UUID),
    ]);
    if (status >= 400) expect(problemOf(response).instance).toBe(response.headers['x-request-id']);
  });

  it('and to input that is not HTTP', async () => {
    const response = await sendRaw(app.url, 'nonsense\r\n\r\n');
    const id = /^x-request-id: (.+)\r$/m.exec(response)?.[1];
    expect(id).toMatch(UUID);
    expect(response).toContain(`"instance":"${id}"`);
  });
});

describe("the client's own id", () => {
  it.each(['a', 'A1_b.c:d-e', '9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11', 'x'.repeat(64)])(
    '%s is used',
    async (id) => {
      const response = await named(id, '/nowhere');
      expect([response.headers['x-request-id'], problemOf(response).instance]).toEqual([id, id]);
      expect(await linesOf(id)).toHaveLength(1);
    },
  );

  it.each<[string, string]>([
    ['nothing', ''],
    ['too long', 'x'.repeat(65)],
    ['a text', 'two words'],
    ['with control characters', '\u009b2J'],
    ['repeated', 'one, two'],
  ])('is replaced if it is %s', async (_, id) => {
    const response = await named(id, '/nowhere');
    expect(response.headers['x-request-id']).toMatch(UUID);
    expect(await linesOf(response.headers['x-request-id'])).toHaveLength(1);
  });
});

describe('at the level debug', () => {
  it('a request is one line with its route pattern, not its path', async () => {
    await named('asked', '/users/get_user?name=Grace&email=grace%40example.com');
    expect((await linesOf('asked')).at(-1)).toMatchObject({
      level: 'debug',
      method: 'GET',
      route: '/users/get_user',
      http_status: 401,
      duration_ms: expect.any(Number),
    });
    expect(JSON.stringify(lines)).not.toMatch(/grace/i);
  });

  it('a request with a traceparent has it in its lines, and no other text of that header', async () => {
    const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
    for (const value of [traceparent, 'Grace'])
      await call(app.url, '/nowhere', {
        headers: { 'x-request-id': `trace-${value}`, traceparent: value },
      });
    expect((await linesOf(`trace-${traceparent}`)).at(-1)).toMatchObject({ traceparent });
    expect((await linesOf('trace-Grace')).at(-1)).not.toHaveProperty('traceparent');
  });

  it('the lines of a request have its submission id', async () => {
    await call(app.url, '/v1/submissions', {
      method: 'POST',
      headers: { 'x-request-id': 'tracking', 'content-type': 'application/json' },
      body: JSON.stringify({ submission_id: 'log/1', upstream: 'other' }),
    });
    await call(app.url, pathOf('log/1'), {
      method: 'DELETE',
      headers: { 'x-request-id': 'cancelling' },
    });
    await named('looking', '/v1/get_submission_info?submission_id=log%2F1');
    expect(await linesOf('tracking')).toMatchObject([
      { event: 'http.responded', route: '/v1/submissions', submission_id: 'log/1' },
    ]);
    expect(await linesOf('cancelling')).toMatchObject([
      { level: 'info', event: 'submission.cancelled', submission_id: 'log/1', status: 'cancelled' },
      { event: 'http.responded', route: '/v1/submissions/:id', submission_id: 'log/1' },
    ]);
    expect(await linesOf('looking')).toMatchObject([
      { event: 'http.responded', submission_id: 'log/1' },
    ]);
  });
});
