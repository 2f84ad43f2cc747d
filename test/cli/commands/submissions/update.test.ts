import { expect, it } from 'vitest';
import { call, detailsOf, pathOf, post } from '../../../support/app/http-calls.ts';
import { useApp } from '../../../support/app/running-app.ts';
import { cli } from '../../../support/processes/cli.ts';

const app = useApp();
const update = (line: string) =>
  cli(['update', ...line.split(' ')], { env: { DAWATCH_URL: app.url } });
const shown = async (id: string) => detailsOf(await call(app.url, pathOf(id)));

it('changes the named options of each id', async () => {
  await post(app.url, { submission_ids: ['a', 'b'], metadata: { order: 1 } });
  const options = '--deadline 48h --unknown-grace 5m --stuck-after 90s --metadata {"order":2}';
  const { code, stdout } = await update(`a b ${options}`);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^tracking {2}a {2}deadline \S+\ntracking {2}b {2}deadline \S+\n$/);
  const details = await shown('b');
  const changed = { unknown_grace_s: 300, stuck_after_s: 90, metadata: { order: 2 } };
  expect(details).toMatchObject(changed);
  expect(Math.round((Date.parse(details.deadline_at) - Date.now()) / 3_600_000)).toBe(48);
});

it('removes metadata with none, and prints JSON', async () => {
  const data_hash = `0x${'a'.repeat(64)}`;
  await post(app.url, { submission_id: 'c', metadata: { order: 1 }, data_hash });
  const none = '--metadata none --callback-url none --data-hash none';
  const { code, stdout } = await update(`c ${none} --json`);
  const without = { submission_id: 'c', metadata: null, callback_url: null, data_hash: null };
  expect([code, JSON.parse(stdout)]).toMatchObject([0, without]);
});

it.each([
  ['kept', 'nothing to change'],
  ['never --metadata none', 'never was never tracked here'],
])('refuses %s with exit code 2, and changes nothing', async (line, message) => {
  await post(app.url, { submission_id: 'kept' });
  const { code, stderr } = await update(line);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  expect((await shown('kept')).history).toHaveLength(1);
});
