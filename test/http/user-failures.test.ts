import { describe, expect, it } from 'vitest';
import type { FaultOrder } from '../../src/sandbox/routes/faults.ts';
import { problemOf } from '../support/app/http-calls.ts';
import {
  openLookups,
  SECOND,
  UPSTREAM_BEARER,
  useLookups,
  userPath,
} from '../support/app/lookups.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const LISTING = '/admin/get_all_users?limit=2';
const TIMEOUT_MS = 10_000;
const clock = new HeldClock(TIMEOUT_MS);
const lookups = useLookups({
  clock,
  limits: { failed_authentications_per_minute: 0 },
});

async function failWith(kind: FaultOrder['kind'], path: string) {
  const { sandbox, get, tokens } = lookups();
  sandbox.injectFault({ kind, target: 'users', retryAfterS: 7 });
  const responded = get(path, tokens.admin);
  const response = await (kind === 'hang' ? clock.exceed(TIMEOUT_MS, responded) : responded);
  sandbox.injectFault({ kind: 'none', target: 'users' });
  const problem = problemOf(response);
  expect(problem.error).toBe(problem.detail);
  expect(response.text).not.toMatch(
    /Invalid API key|Database|doctype|Bad Gateway|Record not found/,
  );
  return {
    status: response.status,
    retryAfter: response.headers['retry-after'],
    detail: problem.detail,
  };
}

describe('a lookup', () => {
  const path = userPath();
  it.each<[FaultOrder['kind'], number, string]>([
    ['hang', 504, 'the upstream did not respond in time'],
    ['reset', 502, 'the upstream cannot be reached'],
    ['html_502', 502, 'the upstream failed'],
    ['redirect', 502, 'the upstream failed'],
    ['database', 502, 'the upstream failed'],
    ['truncated', 502, 'the response of the upstream does not match its interface'],
    ['huge', 502, 'the response of the upstream is too large'],
    ['unauthorized', 502, "the upstream refuses this server's own token"],
  ])('a fault of the upstream (%s) is %i', async (kind, status, detail) => {
    expect(await failWith(kind, path)).toMatchObject({ status, detail });
    expect(lookups().audit().at(-1)).toMatchObject({ caller: 'the admin', result: 'failed' });
  });

  it('a throttled one returns Retry-After', async () => {
    expect(await failWith('throttle', path)).toEqual({
      status: 502,
      retryAfter: '7',
      detail: 'the upstream asks for fewer requests',
    });
  });
});

it('hanging lookups do not delay submissions, and lookups above the limit are refused at once', async () => {
  const released = Promise.withResolvers<void>();
  const hanging = await serve(async (request, response) => {
    if (!request.url?.startsWith('/v1/get_submission_info')) await released.promise;
    response.writeHead(404).end(JSON.stringify({ error: 'Record not found' }));
  });
  const own = await openLookups({
    upstreamUrl: hanging.url,
    bearer: null,
    clock,
    upstream: { budget: { requests: 1_000, per_s: 1, concurrency: 4 } },
  });
  const lookups = Promise.all(
    Array.from({ length: 100 }, (_, index) => own.get(userPath(), `junk-${index}`)),
  );
  let isOver = false;
  void lookups.then(() => {
    isOver = true;
  });
  await eventually(() => expect(own.audit()).toHaveLength(36));
  const submission = await own.get(
    '/v1/get_submission_info?submission_id=some-id',
    own.tokens.service,
  );
  expect([submission.status, isOver]).toEqual([404, false]);
  released.resolve();
  const responses = await lookups;
  const busy = responses.filter(({ status }) => status === 503);
  expect(busy).toHaveLength(36);
  for (const response of busy) {
    expect(response.headers['retry-after']).toBe('1');
    expect(problemOf(response).detail).toBe('too many user lookups are in flight');
  }
  expect(responses.filter(({ status }) => status === 404)).toHaveLength(64);
  expect(own.audit()[0]).toMatchObject({ result: 'busy', detail: null });
});

it('no log line contains a name, an address, a token or a text of the upstream; each failure has a line with its reason', async () => {
  const own = await openLookups({ bearer: UPSTREAM_BEARER });
  const { tokens } = own;
  const requested = { name: 'Secretive Person', email: 'secretive@example.com' };
  await own.get(userPath(), tokens.user);
  await own.get(userPath(requested), tokens.user);
  await own.get(userPath(requested), tokens.service);
  await own.get(`${userPath(requested)}&more=1`, tokens.user);
  await own.get(userPath(requested, '/users/nowhere'), tokens.user);
  await own.get(LISTING, tokens.admin);
  own.sandbox.injectFault({ kind: 'not_json', count: 1, target: 'users' });
  await own.get(userPath(requested), tokens.user);
  for (const secret of [UPSTREAM_BEARER, ...Object.values(tokens)])
    expect(own.logs()).not.toContain(secret);
  expect(own.logs()).not.toMatch(/secretive|example\.com|doctype|0x[0-9a-f]{20}/i);
  expect(own.logs()).not.toContain(SECOND.name);
  const lines = own.logs().split('\n').filter(Boolean);
  const failed = lines.map((line) => JSON.parse(line)).find(({ result }) => result === 'failed');
  expect(failed).toMatchObject({
    event: 'users.lookup',
    level: 'warn',
    action: 'users.get',
    detail: 'malformed',
  });
});
