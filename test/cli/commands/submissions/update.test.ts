import { describe, expect, it } from 'vitest';
import { call, detailsOf, pathOf, post } from '../../../support/app/http-calls.ts';
import { useApp } from '../../../support/app/running-app.ts';
import { cli } from '../../../support/processes/cli.ts';

const app = useApp();
const update = (...args: string[]) => cli(['update', ...args], { env: { DAWATCH_URL: app.url } });
const shown = async (id: string) => detailsOf(await call(app.url, pathOf(id)));

it('changes the named options of each id', async () => {
  await post(app.url, { submission_ids: ['a', 'b'], metadata: { order: 1 } });
  const options = [
    '--deadline',
    '48h',
    '--unknown-grace',
    '5m',
    '--stuck-after',
    '90s',
    '--metadata',
    '{"order":2}',
  ];
  const { code, stdout } = await update('a', 'b', ...options);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^tracking {2}a {2}deadline \S+\ntracking {2}b {2}deadline \S+\n$/);
  for (const id of ['a', 'b']) {
    const details = await shown(id);
    expect(details).toMatchObject({
      unknown_grace_s: 300,
      stuck_after_s: 90,
      metadata: { order: 2 },
    });
    const hours = (Date.parse(details.deadline_at) - Date.now()) / 3_600_000;
    expect(Math.round(hours)).toBe(48);
  }
});

it('removes metadata with none, and prints JSON', async () => {
  await post(app.url, { submission_id: 'c', metadata: { order: 1 } });
  const { code, stdout } = await update(
    'c',
    '--metadata',
    'none',
    '--callback-url',
    'none',
    '--json',
  );
  expect([code, JSON.parse(stdout)]).toMatchObject([
    0,
    { submission_id: 'c', metadata: null, callback_url: null },
  ]);
});

describe('refuses with exit code 2, and changes nothing:', () => {
  it.each<[string, string[], string]>([
    ['no option', ['kept'], 'nothing to change'],
    ['metadata that are no object', ['kept', '--metadata', '[1]'], 'Expected a JSON object'],
    ['a deadline without a unit', ['kept', '--deadline', '90'], 'Expected a duration'],
    [
      'a callback URL that is not allowed',
      ['kept', '--callback-url', 'http://10.0.0.1/'],
      'callback_url',
    ],
    ['an unknown id', ['never', '--metadata', 'none'], 'never was never tracked here'],
    [
      'a time limit of an ended id',
      ['ended', '--deadline', '1h'],
      'only metadata and callback_url can change',
    ],
  ])('%s', async (_, args, message) => {
    await post(app.url, { submission_ids: ['kept', 'ended'] });
    await call(app.url, pathOf('ended'), { method: 'DELETE' });
    const { code, stderr } = await update(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect((await shown('kept')).history).toHaveLength(1);
  });
});
