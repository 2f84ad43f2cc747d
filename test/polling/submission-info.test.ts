import { expect, it, onTestFinished } from 'vitest';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { call, detailsOf, type HttpResponse, pathOf, post } from '../support/app/http-calls.ts';
import { API_KEY, appForTest } from '../support/app/running-app.ts';
import { eventually } from '../support/until.ts';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';
const info = (id: string, more = '') =>
  `/v1/get_submission_info?submission_id=${encodeURIComponent(id)}${more}`;

async function open(options: SandboxOptionsInput = {}) {
  const sandbox = await startSandbox({ options: { speed: 200, rowDelayMs: 0, ...options } });
  onTestFinished(() => sandbox.close());
  const app = await appForTest({
    upstreamUrl: sandbox.url,
  });
  const direct = (id: string) =>
    call(sandbox.url, info(id), { headers: { 'x-api-key': 'sandbox-key' } });
  return {
    sandbox,
    url: app.url,
    direct,
    lookUp: (id: string, more = '') => call(app.url, info(id, more)),
    submit: () => sandbox.model.submit('some data', Date.now()),
    requests: () => sandbox.stats().requests,
    finalized: async (id: string) => {
      await eventually(async () => expect((await direct(id)).text).toContain('Finalized'));
    },
    trackedUntilFinal: async (id: string) => {
      await post(app.url, { submission_id: id });
      expect((await call(app.url, `${pathOf(id)}/wait?timeout_s=240`)).text).toContain(
        '"finalized"',
      );
    },
  };
}

function problemOf(response: HttpResponse): {
  status: number;
  detail: string;
  error?: string;
  type: string;
} {
  expect(response.headers['content-type']).toContain('application/problem+json');
  return JSON.parse(response.text);
}

it('the upstream is represented byte by byte: untracked from the upstream, finalized from the ledger', async () => {
  const { lookUp, submit, direct, finalized, trackedUntilFinal, requests } = await open();
  const [passing, tracked] = [submit(), submit()];
  await finalized(passing);
  const [there, here] = [await direct(passing), await lookUp(passing)];
  expect([here.status, here.headers['content-type'], here.text]).toEqual([
    200,
    'application/json; charset=utf-8',
    there.text,
  ]);

  await trackedUntilFinal(tracked);
  const { text } = await direct(tracked);
  const before = requests();
  for (let round = 0; round < 5; round++) expect((await lookUp(tracked)).text).toBe(text);
  expect(requests()).toBe(before);
});

it('an open tracked submission reuses its last response, and new results are recorded', async () => {
  const { lookUp, submit, sandbox, url } = await open({ speed: 0.01 });
  const id = submit();
  await post(url, { submission_id: id });
  const responses = await Promise.all(Array.from({ length: 200 }, () => lookUp(id)));
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  expect(responses.every(({ text }) => text.includes('"Pending"'))).toBe(true);
  // One request may be in flight at any moment.
  await expect
    .poll(async () => {
      const { requests } = sandbox.stats();
      return detailsOf(await call(url, pathOf(id))).polls - requests;
    })
    .toBe(0);
});

it('an unknown id is a 404, although the upstream responds with 500', async () => {
  const { lookUp } = await open();
  const response = await lookUp(UNKNOWN);
  const problem = problemOf(response);
  expect([response.status, problem.status, problem.error]).toEqual([404, 404, problem.detail]);
  expect(problem.detail).toMatch(/not found/i);
});

it('a query that is not valid is 400 with a reason, without a request', async () => {
  const { url, requests } = await open();
  for (const query of [
    '',
    '?submission_id=',
    '?submission_id=a&submission_id=b',
    '?submission_id=a%20b',
    '?submission_id=a&other=1',
    '?submission_id=a&upstream=nowhere',
  ]) {
    const problem = problemOf(await call(url, `/v1/get_submission_info${query}`));
    expect([problem.status, problem.error], query).toEqual([400, problem.detail]);
    expect(problem.detail).toMatch(/^query\b/);
  }
  expect(requests()).toBe(0);
});

it.each([
  ['html_502', 502, undefined],
  ['reset', 502, undefined],
  ['not_json', 502, undefined],
  ['database', 502, undefined],
  ['unauthorized', 502, undefined],
  ['throttle', 502, '7'],
] as const)('an upstream response %s is a %i', async (kind, status, retryAfter) => {
  const { lookUp, submit, sandbox } = await open();
  sandbox.injectFault({ kind, count: 1, ...(kind === 'throttle' && { retryAfterS: 7 }) });
  const response = await lookUp(submit());
  const problem = problemOf(response);
  expect([response.status, problem.status, response.headers['retry-after']]).toEqual([
    status,
    status,
    retryAfter,
  ]);
  expect(response.text).not.toMatch(/sandbox-key|<html|Invalid API key/i);
});

it('requires a credential, and reports failures in the form of the interface', async () => {
  const { url, lookUp } = await open();
  expect(problemOf(await lookUp('no-uuid'))).toMatchObject({
    status: 400,
    error: expect.stringContaining('invalid character'),
  });
  const none = await call(url, info(UNKNOWN), { headers: { 'x-api-key': '' } });
  expect([none.status, problemOf(none).error]).toEqual([401, problemOf(none).detail]);
  const bearer = await call(url, info(UNKNOWN), {
    headers: { 'x-api-key': '', authorization: `Bearer ${API_KEY}` },
  });
  expect(bearer.status).toBe(404);
});
