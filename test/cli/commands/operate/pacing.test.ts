import { expect, it, onTestFinished } from 'vitest';
import { call } from '../../../support/app/http-calls.ts';
import { openApp } from '../../../support/app/running-app.ts';
import { cli } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';
import { tempFolder } from '../../../support/temp-folder.ts';
import { describing, learnedBy } from '../../../support/virtual-time/pacing.ts';

const run = (url: string, ...args: string[]) =>
  cli(['pacing', ...args], { env: { DAWATCH_URL: url } });

async function open(): Promise<string> {
  const policy = () => describing(learnedBy);
  const app = await openApp({ database: `${tempFolder()}/dawatch.db`, policy });
  onTestFinished(() => app.close());
  return app.url;
}

it('shows a paragraph per upstream', async () => {
  const { code, stdout, stderr } = await run(await open());
  expect([code, stderr]).toEqual([0, '']);
  const [first = '', second = '', ...more] = stdout.split('\n\n\n');
  expect(more).toEqual([]);
  expect(first).toMatch(/^default\n/);
  for (const line of [
    /^ {2}state +up, 0 tracked$/m,
    /^ {2}mode +slots: submissions become final in groups, at the slots of a chain$/m,
    /^ {2}slots +one every 20\.0 s, 3 % of them empty; the next group becomes final in about \d+\.\d s$/m,
    /^ {2}senders +3, each sending serially$/m,
    /^ {2}finality +50 % within 40 s, 90 % within 56 s, 99 % within 60 s \(learned from 200 submissions\)$/m,
    /^ {2}polls +after 42 s, 60 s until it is final; observations of other submissions can reschedule them$/m,
    /^ {2}budget +0 of 5000 requests per 1\.0 s used, 0 of 64 in flight$/m,
    /^ {2}next +nothing to poll$/m,
    /at a price of 1 request per second of lag$/m,
    /^ {2}now, measured +1\.50 +0\.80 s +2\.30$/m,
    /^ {2}lower bound without neighbors +1\.40 +0\.70 s +2\.10$/m,
    /^ {2}polling every 5 s +8\.50 +2\.50 s +11\.00$/m,
  ])
    expect(first).toMatch(line);
  expect(second).toMatch(/^other\n/);
});

it('shows the node of the chain in a line', async () => {
  const server = await open();
  const pacing = JSON.parse((await call(server, '/v1/pacing')).text);
  const chain = {
    state: 'connected',
    node: 'node.example',
    name: 'Test Chain',
    genesis_hash: null,
    block_number: 7,
    block_at: new Date(Date.parse(pacing.at) - 12_340).toISOString(),
    problem: null,
  };
  const none = { state: 'unavailable', name: null, block_number: null, block_at: null };
  const responses = [
    [chain, /^ {2}chain +connected, Test Chain at node\.example, block 7 final since 12\.3 s$/m],
    [
      { ...chain, ...none, problem: 'node.example: TLS failed' },
      /unavailable, unknown chain at node\.example, no finalized block yet; node\.example: TLS failed$/m,
    ],
  ] as const;
  for (const [shown, expected] of responses) {
    const { url } = await serve((_request, response) =>
      response.end(
        JSON.stringify({ ...pacing, upstreams: [{ ...pacing.upstreams[0], chain: shown }] }),
      ),
    );
    expect((await run(url)).stdout).toMatch(expected);
  }
  expect((await run(server)).stdout).not.toMatch(/^ {2}chain/m);
});

it('shows the next poll and its reason', async () => {
  const server = await open();
  const pacing = JSON.parse((await call(server, '/v1/pacing')).text);
  const next = {
    submission_id: 'a\u001b[2J',
    at: new Date(Date.parse(pacing.at) + 12_340).toISOString(),
  };
  const responses = [
    [
      { ...next, reason: 'scout', held_by: null },
      /in 12\.3 s: scout, polled first, as a sample of the submissions that are likely to become final with it$/m,
    ],
    [
      { ...next, at: null, reason: 'net', held_by: 'budget' },
      /after the next response: net, .*; waits for the request budget/m,
    ],
  ] as const;
  for (const [shown, expected] of responses) {
    const { url } = await serve((_request, response) =>
      response.end(
        JSON.stringify({ ...pacing, upstreams: [{ ...pacing.upstreams[0], next: shown }] }),
      ),
    );
    expect((await run(url)).stdout).toMatch(expected);
  }
});

it('prints the JSON of the HTTP interface', async () => {
  const { code, stdout } = await run(await open(), '--json');
  expect([code, JSON.parse(stdout)]).toMatchObject([
    0,
    { upstreams: [{ upstream: 'default' }, {}] },
  ]);
});
