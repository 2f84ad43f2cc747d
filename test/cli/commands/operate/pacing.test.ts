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
  ])
    expect(first).toMatch(line);
  expect(second).toMatch(/^other\n/);
});

/** The output with these fields of the first upstream, which depend on the time of the server. */
async function printed(fieldsAt: (at: number) => object): Promise<string> {
  const pacing = JSON.parse((await call(await open(), '/v1/pacing')).text);
  const upstreams = [{ ...pacing.upstreams[0], ...fieldsAt(Date.parse(pacing.at)) }];
  const text = JSON.stringify({ ...pacing, upstreams });
  const { url } = await serve((_, response) => response.end(text));
  return (await run(url)).stdout;
}
const iso = (ms: number) => new Date(ms).toISOString();

it('shows the chain and each of its nodes in a line', async () => {
  const chain = { name: 'Test Chain', genesis_hash: null, state: 'connected' };
  const nodes = [
    { host: 'a.example', state: 'used', problem: null },
    { host: 'b.example', state: 'disconnected', problem: 'TLS failed' },
  ];
  const withBlock = (at: number) => {
    const block = { block_number: 7, block_at: iso(at - 12_340) };
    const none = { block_number: null, block_at: null };
    const both = [
      { ...nodes[0], ...block },
      { ...nodes[1], ...none },
    ];
    return { chain: { ...chain, ...block, nodes: both } };
  };
  expect(await printed(withBlock)).toMatch(
    new RegExp(
      [
        '^ {2}chain +connected, Test Chain, block 7 final since 12\\.3 s',
        ' {2}node +a\\.example used, block 7 final since 12\\.3 s',
        ' {2}node +b\\.example disconnected, no finalized block yet: TLS failed$',
      ].join('\n'),
      'm',
    ),
  );
  expect(await printed(() => ({}))).not.toMatch(/^ {2}chain/m);
});

it('shows the next poll and its reason', async () => {
  const next = { submission_id: 'a\u001b[2J' };
  const scout = (at: number) => ({
    next: { ...next, at: iso(at + 12_340), reason: 'scout', held_by: null },
  });
  expect(await printed(scout)).toMatch(
    /in 12\.3 s: scout, polled first, as a sample of the submissions that are likely to become final with it$/m,
  );
  const held = { next: { ...next, at: null, reason: 'net', held_by: 'budget' } };
  expect(await printed(() => held)).toMatch(
    /after the next response: net, .*; waits for the request budget/m,
  );
});

it('prints the JSON of the HTTP interface', async () => {
  const { code, stdout } = await run(await open(), '--json');
  expect([code, JSON.parse(stdout)]).toMatchObject([
    0,
    { upstreams: [{ upstream: 'default' }, {}] },
  ]);
});
