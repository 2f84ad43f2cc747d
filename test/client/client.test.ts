import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { ApiError, ConnectionError, DawatchClient } from '../../src/client/index.ts';
import { API_KEY, useAppWithSandbox } from '../support/app/running-app.ts';
import { createAuthority } from '../support/redis/certificates.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { deadAddress, serve } from '../support/servers/upstream-server.ts';

const app = useAppWithSandbox();
const client = (url = app.url, apiKey = API_KEY) => new DawatchClient({ url, apiKey });

/** A server that is not dawatch. */
const fakeServer = async (respond: RequestListener) => (await serve(respond)).url;

it('tracks a submission until it is final, and reads its history', async () => {
  const id = app.submit();
  const tracked = await client().track([id], { metadata: { order: 7 } });
  expect(tracked).toMatchObject({
    accepted: 1,
    already_tracked: 0,
    submissions: [{ submission_id: id }],
  });
  expect(await client().wait(id, 60)).toMatchObject({
    status: 'finalized',
    metadata: { order: 7 },
  });
  expect((await client().get(id)).history.at(-1)?.status).toBe('finalized');
  expect(await client().track([id])).toMatchObject({ accepted: 0, already_final: 1 });
});

it('rejects metadata nested too deeply with the limit of the server', async () => {
  const metadata = JSON.parse(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`);
  await expect(client().track(['deep'], { metadata })).rejects.toThrow(/at most 64 levels/);
  await expect(client().get('deep')).rejects.toMatchObject({ status: 404 });
});

it('lists all, counts and looks up submissions by conditions', async () => {
  const ids = Array.from(
    { length: 1_005 },
    (_, index) => `search-${String(index).padStart(4, '0')}`,
  );
  await client().track(ids, { upstream: 'other', metadata: { order: 4711, paid: true } });
  await client().cancel('search-0007');
  const filter = { upstream: 'other', metadata: { order: 4711, paid: true }, prefix: 'search-' };
  const listed: string[] = [];
  for await (const { submission_id } of client().listAll(filter)) listed.push(submission_id);
  expect(listed).toEqual(ids);
  expect(await client().count(filter)).toBe(1_005);
  const ended_since = new Date(Date.now() - 60_000).toISOString();
  expect(await client().count({ ...filter, status: ['cancelled', 'expired'], ended_since })).toBe(
    1,
  );
  expect(await client().count({ ...filter, tracked_until: ended_since })).toBe(0);
  const found = await client().lookup(['search-0003', 'never-tracked', 'search-0001']);
  expect(found.submissions.map((one) => one.submission_id)).toEqual(['search-0003', 'search-0001']);
  expect(found.not_found).toEqual(['never-tracked']);
  expect(await client().lookup([])).toEqual({ submissions: [], not_found: [] });
});

it.each(['../livez', 'a?b=c#d', '%2e%2e', '<>|\\^~'])(
  'tracks, gets, awaits and cancels the id %s unchanged',
  async (id) => {
    await client().track([id], { upstream: 'other' });
    expect((await client().get(id)).submission_id).toBe(id);
    expect((await client().wait(id, 0)).submission_id).toBe(id);
    expect(await client().cancel(id)).toMatchObject({ submission_id: id, status: 'cancelled' });
  },
);

it('accepts a base URL with trailing slashes', async () => {
  expect((await client(`${app.url}//`).list()).submissions).toBeInstanceOf(Array);
});

describe('throws an ApiError', () => {
  it('with the status and the positions of the invalid values', async () => {
    const error = await client()
      .track(['good', 'not good'])
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      name: 'ApiError',
      status: 400,
      errors: [{ pointer: '/submission_ids/1' }],
    });
    expect(String(error)).toContain('The request is not valid: body /submission_ids/1');
  });
});

describe('throws a ConnectionError', () => {
  it('for a refused connection, with the cause', async () => {
    const url = await deadAddress();
    await expect(client(url).list()).rejects.toMatchObject({
      name: 'ConnectionError',
      message: `no response from ${url}: the connection was refused (ECONNREFUSED)`,
      code: 'ECONNREFUSED',
      cause: expect.any(Error),
    });
  });

  it('for an address that the platform does not call, with its reason', async () => {
    const message = 'no response from http://127.0.0.1:1: bad port';
    await expect(client('http://127.0.0.1:1').list()).rejects.toMatchObject({ message });
  });

  it('for a certificate that is not trusted, with its code', async () => {
    const { key, cert } = createAuthority().issue('server');
    const tls = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
    const { url, requests } = await openReceiver({}, { tls });
    await expect(client(url).list()).rejects.toMatchObject({
      name: 'ConnectionError',
      message: expect.stringMatching(/: its certificate is not trusted \(UNABLE_TO_VERIFY/),
    });
    await expect(client(url).events().next()).rejects.toThrow('certificate is not trusted');
    expect(requests).toEqual([]);
  });

  const page =
    (status: number, headers = {}): RequestListener =>
    (_, response) =>
      response.writeHead(status, { 'content-type': 'text/html', ...headers }).end('<h1>no</h1>');
  const body =
    (text: string, status = 200): RequestListener =>
    (_, response) =>
      response.writeHead(status).end(text);
  const other = { location: 'https://login.example/in?state=SECRET' };
  const PROXY = 'a proxy in front of dawatch';
  it.each<[string, string, RequestListener]>([
    ['a large body', `HTTP 413: ${PROXY} refuses a request of this size`, page(413)],
    ['a port for https', `HTTP 400: ${PROXY} refuses the request`, page(400)],
    ['an absent server', `HTTP 502: ${PROXY} gets no response`, page(502)],
    ['a proxy with a login', `HTTP 401: ${PROXY} requires a login`, page(401)],
    [
      'another error',
      `HTTP 403: ${PROXY} refuses the request`,
      body('{"message":"Forbidden"}', 403),
    ],
    ['another server', 'responded with HTTP 404, but is not a dawatch server', page(404)],
    ['half of a document', 'but is not', body('{"submissions":')],
    ['null', 'but is not', body('null')],
    ['a cut connection', ': the connection was closed', (_, response) => response.destroy()],
    [
      'a redirect',
      'redirects to https://login.example/in, which is not followed',
      page(302, other),
    ],
  ])('for %s: "%s"', async (_, message, respond) => {
    const url = await fakeServer(respond);
    const error = await client(url)
      .list()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(String(error)).toContain(message);
    expect(String(error)).toContain(url);
  });

  it.each([403, 413, 302])(
    'at once while it waits or follows events, if a proxy responds with %d',
    async (status) => {
      const url = await fakeServer(page(status, other));
      const error = { name: 'ConnectionError', status };
      await expect(client(url).waitUntilFinal('a')).rejects.toMatchObject(error);
      await expect(client(url).untilFinal(['a']).next()).rejects.toMatchObject(error);
      await expect(client(url).events().next()).rejects.toMatchObject(error);
    },
  );

  it('instead of sending the key to another host', async () => {
    const seen: unknown[] = [];
    const other = await fakeServer((request, response) => {
      seen.push(request.headers['x-api-key']);
      response.end('{}');
    });
    const url = await fakeServer((_, response) =>
      response.writeHead(307, { location: other }).end(),
    );
    await expect(client(url).track(['a'])).rejects.toBeInstanceOf(ConnectionError);
    expect(seen).toEqual([]);
  });
});

it('tracks any number of submissions in requests of at most 900 kB, and counts those that are refused from the first', async () => {
  const bodies: { submissions: unknown[] }[] = [];
  const url = await fakeServer(async (request, response) => {
    const body = await text(request);
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(900_000);
    const { submissions } = JSON.parse(body);
    bodies.push({ submissions });
    const isLast = submissions.at(-1).submission_id === 'last';
    const pointer = `/submissions/${submissions.length - 1}`;
    const errors = [{ pointer, detail: 'is refused' }];
    response
      .writeHead(isLast ? 400 : 202)
      .end(
        JSON.stringify(
          isLast
            ? { title: 'Refused', detail: `body ${pointer}`, errors }
            : { accepted: submissions.length, already_tracked: 0, submissions },
        ),
      );
  });
  const metadata = { note: 'ü'.repeat(1_900) };
  const items = Array.from({ length: 600 }, (_, index) => ({
    submission_id: `${index}`,
    metadata,
  }));
  const tracked = await client(url).track(items);
  expect(tracked).toMatchObject({ accepted: 600, already_tracked: 0, submissions: items });
  expect(bodies.length).toBe(3);
  const pointer = `/submissions/${items.length}`;
  await expect(client(url).track([...items, 'last'])).rejects.toMatchObject({
    message: `Refused: body ${pointer}`,
    errors: [{ pointer, detail: 'is refused' }],
  });
});

it('looks up, and tracks with shared metadata, any number of ids in requests that proxies and the server allow', async () => {
  const counts: number[] = [];
  const url = await fakeServer(async (request, response) => {
    const { submission_ids: ids, metadata } = JSON.parse(await text(request));
    counts.push(ids.length);
    const found = { submissions: ids.slice(0, 500), not_found: [], remaining: ids.slice(500) };
    const tracked = { accepted: ids.length, submissions: [] };
    response.writeHead(200).end(JSON.stringify(metadata ? tracked : found));
  });
  const ids = Array.from({ length: 1_400 }, (_, index) => `${index}`);
  await client(url).track(ids, { metadata: { note: 'x' } });
  expect(counts.splice(0)).toEqual([1_000, 400]);
  expect((await client(url).lookup(ids)).submissions).toEqual(ids);
  expect(counts).toEqual([1_000, 900, 400]);
});

it.each([
  'localhost:8080',
  'http://user:SECRET@127.0.0.1:1',
  'http://user:12/SECRET@127.0.0.1:1',
  'ftp://SECRET@h',
  'SECRET',
])('refuses the address %s without showing it', (url) => {
  expect(() => client(url)).toThrow(TypeError);
  expect(() => client(url)).not.toThrow(/SECRET/);
});
