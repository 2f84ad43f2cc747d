import { expect, it, onTestFinished } from 'vitest';
import { cliProcess } from '../support/cli.ts';
import { call } from '../support/http-calls.ts';
import { ledgerThatLearned } from '../support/learned.ts';
import { openApp } from '../support/running-app.ts';
import { serve } from '../support/upstream-server.ts';

const run = (url: string, ...args: string[]) => cliProcess(['pacing', ...args], { env: { DAWATCH_URL: url } });

async function open(): Promise<string> {
  const app = await openApp({ database: ledgerThatLearned() });
  onTestFinished(() => app.close());
  return app.url;
}

it('shows a paragraph per upstream', async () => {
  const { code, stdout, stderr } = await run(await open());
  expect([code, stderr]).toEqual([0, '']);
  const [first = '', second = '', ...more] = stdout.split('\n\n');
  expect(more).toEqual([]);
  expect(first).toMatch(/^default\n/);
  for (const line of [
    /^ {2}state +closed, 0 tracked$/m,
    /^ {2}mode +cohorts: few are asked when a block becomes final/m,
    /^ {2}clock +a block becomes final every 20\.0 s, the next in \d+\.\d s to \d+\.\d s$/m,
    /^ {2}time to finality +39\.5 s at least$/m,
    /^ {2}groups +3\.0 become final at once$/m,
    /^ {2}line +0 in order of tracking, 0 of them scouts; 0 % are overtaken$/m,
    /^ {2}budget +0 of 5000 requests per 1\.0 s taken, 0 of 64 under way$/m,
    /^ {2}next +nothing to ask about$/m,
  ])
    expect(first).toMatch(line);
  expect(second).toMatch(/^other\n/);
  for (const name of ['clock', 'time to finality', 'groups'])
    expect(second).toMatch(new RegExp(`^ {2}${name} +not known$`, 'm'));
});

it('says whom the next request is about, and why', async () => {
  const server = await open();
  const pacing = JSON.parse((await call(server, '/v1/pacing')).text);
  const next = { submission_id: 'a\u001b[2J', at: new Date(Date.parse(pacing.at) + 12_340).toISOString() };
  const answers = [
    [
      { ...next, reason: 'scout', held_by: null },
      /in 12\.3 s: scout, among the first in line, asked at the next block$/m,
    ],
    [{ ...next, at: null, reason: 'net', held_by: 'budget' }, /after the next answer: net, .*; it waits for a place/m],
    [{ ...next, at: pacing.at, reason: 'of a newer server', held_by: null }, /now: of a newer server, \?$/m],
  ] as const;
  for (const [shown, expected] of answers) {
    const { url } = await serve((_request, response) =>
      response.end(JSON.stringify({ ...pacing, upstreams: [{ ...pacing.upstreams[0], next: shown }] })),
    );
    expect((await run(url)).stdout).toMatch(expected);
  }
});

it('shows it in JSON as the HTTP interface does', async () => {
  const url = await open();
  const { code, stdout } = await run(url, '--json');
  expect(code).toBe(0);
  const { upstreams } = JSON.parse((await call(url, '/v1/pacing')).text);
  expect(JSON.parse(stdout).upstreams).toMatchObject(
    upstreams.map(({ upstream, mode }: { upstream: string; mode: string }) => ({ upstream, mode })),
  );
});
