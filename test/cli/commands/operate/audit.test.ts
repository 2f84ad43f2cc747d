import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openLookups, SECOND, userPath } from '../../../support/app/lookups.ts';
import { rawConnection } from '../../../support/ledger/ledger-file.ts';
import { cli } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

it('lists entries, exports them, verifies that they are as written, and names the first that is not', async () => {
  const lookups = await openLookups();
  for (let index = 0; index < 3; index += 1) await lookups.get(userPath(), lookups.tokens.user);
  const database = join(lookups.folder, 'ledger.db');
  const env = {
    DAWATCH_URL: lookups.url,
    DAWATCH_ADMIN_TOKEN: lookups.tokens.admin,
    DAWATCH_API_KEY: null,
    DAWATCH_DATABASE: database,
  };
  const run = (line: string) => cli(['audit', ...line.split(' ').filter(Boolean)], { env });

  const { code, stdout } = await run('');
  const [columns, newest] = stdout.split('\n');
  expect([code, columns]).toEqual([
    0,
    expect.stringMatching(/^at +caller +token +address +action +result +subject +email +detail$/),
  ]);
  expect(newest).toMatch(
    /Z {2}the user {2}2 +127\.0\.0\.1 {2}users\.get {2}found +- +u…@example\.com$/,
  );
  const listed = async (options: string) => JSON.parse((await run(`${options} --json`)).stdout);
  const { entries, head } = await listed('--action users.get,users.list --since 1h --limit 2');
  expect([entries.length, head]).toEqual([2, { seq: 4, hash: expect.any(String) }]);
  expect((await listed('--until 1h')).entries).toEqual([]);
  expect((await listed(`--email ${SECOND.email.toUpperCase()}`)).entries).toHaveLength(3);
  expect((await listed('--email nobody@example.com')).entries).toEqual([]);
  expect((await run('--action users.gone')).stderr).toContain('must be one or more of');

  const file = join(tempFolder(), 'audit.ndjson');
  writeFileSync(file, (await run('export')).stdout);
  const verified = await run(`verify --expect-head ${head.hash}`);
  expect([verified.code, verified.stdout]).toEqual([
    0,
    expect.stringMatching(/^intact: 5 entries\nhead [0-9a-f]{64}\n$/),
  ]);
  expect(await run(`verify --file ${file} --expect-head ${head.hash}`)).toEqual(verified);
  expect(await listed('verify')).toMatchObject({ intact: true, entries: 5 });

  writeFileSync(file, readFileSync(file, 'utf8').replace('"result":"found"', '"result":"refused"'));
  expect(await run(`verify --file ${file}`)).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(/^broken: entry 1: its hash/),
  });
  rawConnection(database).exec(
    "DROP TRIGGER audit_is_append_only; UPDATE audit SET caller = 'x' WHERE seq = 2",
  );
  expect(await run('verify')).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(/^broken: entry 2: .* \(1 entry before are intact\)\n$/),
  });
  expect((await run(`verify --expect-head ${'f'.repeat(64)} --json`)).code).toBe(3);
});

it.each<[string[], RegExp]>([
  [['verify', '--expect-head', 'abc'], /Expected the 64 hexadecimal digits/],
  [['verify', '--file', import.meta.filename], /audit\.test\.ts, line 1: /],
])('%j exits with 2', async (args, message) => {
  const { code, stdout, stderr } = await cli(['audit', ...args]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(message);
});
