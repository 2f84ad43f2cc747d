import { fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { registerProblems } from '../../src/http/problems.ts';
import { compileValidator } from '../../src/http/typed-server.ts';
import { LedgerError } from '../../src/ledger/errors.ts';
import { registerSubmit } from '../../src/polling/submit-route.ts';

type Deps = Parameters<typeof registerSubmit>[1];
const ID = '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325';

/** The route with an upstream that accepts everything, and the given tracking. */
async function respondWith(
  track: () => unknown,
  { isWritable = true, release = () => undefined as unknown } = {},
) {
  const lines: string[] = [];
  let submits = 0;
  const server = fastify({
    logger: { level: 'error', stream: { write: (line: string) => lines.push(line) } },
  });
  onTestFinished(() => server.close());
  server.setValidatorCompiler(compileValidator as never);
  server.setSerializerCompiler(() => (body) => JSON.stringify(body));
  registerProblems(server);
  server.addHook('onRequest', async (request) => {
    request.identity = { kind: 'unknown' };
  });
  const response = { httpStatus: 200, body: Buffer.from('{}'), headers: {} };
  const submitter = {
    submit: async () => {
      submits += 1;
      return { kind: 'accepted', submissionId: ID, response };
    },
  };
  const pass = (...args: unknown[]) => (args.at(-1) as () => void)();
  await registerSubmit(
    server as never,
    {
      submitters: new Map([['default', { submitter, maxBytes: 100 }]]),
      tracker: { track, hold: () => () => undefined },
      watcher: {
        health: () => ({ ledgerWritable: isWritable }),
        reserve: async () => ({ kind: 'reserved' }),
        release,
      },
      admission: { admitBody: pass },
      authenticator: { currentCaller: () => ({ scopes: new Set(['submissions:write']) }) },
    } as never as Deps,
  );
  const result = await server.inject({
    method: 'POST',
    url: '/v1/submit_data',
    payload: { data: 'x' },
  });
  return { status: result.statusCode, problem: result.json(), logged: lines.join(''), submits };
}

const failing = (problem: 'full' | 'io') => () => {
  throw new LedgerError(problem, 'no room');
};

it.each([
  ['the disk is full', 507, failing('full')],
  ['the ledger is unavailable', 500, failing('io')],
  [
    'it is tracked at other',
    500,
    () => ({ kind: 'conflict', submissionId: ID, reason: 'is tracked at other' }),
  ],
])(
  'returns the id of accepted data that cannot be tracked because %s',
  async (reason, status, track) => {
    const { problem, logged, submits, ...response } = await respondWith(track);
    expect([response.status, submits]).toEqual([status, 1]);
    expect(problem).toMatchObject({ submitted: 'yes', submission_id: ID, error: problem.detail });
    expect(problem.detail).toContain(
      `accepted the data as ${ID}, but it is not tracked: ${reason}`,
    );
    expect(logged).toContain(ID);
  },
);

it('reports `unclear` if an unexpected error occurs after the data was sent', async () => {
  const release = () => {
    throw new Error('a defect');
  };
  const { status, problem } = await respondWith(() => undefined, { release });
  expect([status, problem.submitted, problem.error]).toEqual([500, 'unclear', problem.detail]);
});

it('submits nothing while the ledger cannot be written', async () => {
  const { status, problem, submits } = await respondWith(failing('full'), { isWritable: false });
  expect([status, problem.submitted, submits]).toEqual([503, 'no', 0]);
});
