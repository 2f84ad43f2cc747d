import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import { call, post } from '../support/http-calls.ts';
import { useAppWithSandbox } from '../support/running-app.ts';

const app = useAppWithSandbox();

type Readiness = { status: string; ledger: string; upstreams: Record<string, { state: string; tracked: number }> };

async function readiness(): Promise<Readiness> {
  const answer = await call(app.url, '/readyz');
  expect(answer.status).toBe(200);
  return JSON.parse(answer.text) as Readiness;
}

const untilState = (state: string) =>
  vi.waitFor(async () => expect((await readiness()).upstreams.default?.state).toBe(state), { timeout: 15_000 });

// Something that is always asked about, so that the app notices what the upstream does.
beforeAll(async () => {
  await post(app.url, { submission_id: '00000000-0000-4000-8000-000000000000' });
});

afterEach(async () => {
  app.sandbox.answerNext({ kind: 'none' });
  await untilState('closed');
});

it('is alive', async () => {
  const answer = await call(app.url, '/livez');
  expect(answer).toMatchObject({ status: 200, text: '{"status":"ok"}' });
});

it('is ready while its upstreams answer', async () => {
  expect(await readiness()).toMatchObject({
    status: 'ok',
    ledger: 'ok',
    upstreams: { default: { state: 'closed', tracked: 1, in_flight: expect.any(Number) } },
  });
});

it.each([
  ['is out', 'reset', 'down'],
  ['sends pages of a proxy', 'html_503', 'down'],
  ['refuses the key', 'unauthorized', 'unauthorized'],
] as const)(
  'takes submissions but is degraded while the upstream %s, and is well again after it',
  async (_, kind, state) => {
    app.sandbox.answerNext({ kind });
    await untilState(state);
    expect((await readiness()).status).toBe('degraded');
    expect((await post(app.url, { submission_id: `taken-while-${state}-${kind}` })).status).toBe(202);
    app.sandbox.answerNext({ kind: 'none' });
    await untilState('closed');
    expect((await readiness()).status).toBe('ok');
  },
);
