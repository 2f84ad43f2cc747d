import { readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openLookups, userPath } from '../../../support/app/lookups.ts';
import { openLedger, rawConnection } from '../../../support/ledger/ledger-file.ts';
import { cli } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

it('head, export and verify show that the audit is as it was written, and name the first entry that is not', async () => {
  const lookups = await openLookups();
  for (let index = 0; index < 3; index += 1) await lookups.get(userPath(), lookups.tokens.user);
  const database = join(lookups.folder, 'ledger.db');
  const env = {
    DAWATCH_URL: lookups.url,
    DAWATCH_ADMIN_TOKEN: lookups.tokens.admin,
    DAWATCH_API_KEY: null,
    DAWATCH_DATABASE: database,
  };
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await cli(['audit', ...args], { env });
    return [code, stdout, stderr];
  };
  const [code, stdout] = await run('head');
  const head = String(stdout).trim();
  expect([code, head]).toEqual([0, expect.stringMatching(/^[0-9a-f]{64}$/)]);
  expect(JSON.parse(String((await run('head', '--json'))[1]))).toEqual({ seq: 3, hash: head });

  const listed = async (...args: string[]) =>
    JSON.parse(String((await run('--json', ...args))[1])).entries.length;
  const both = ['--action', 'users.get,users.list', '--since', '1h'];
  expect(await listed(...both, '--caller', 'the user', '--limit', '2')).toBe(2);
  expect(await listed('--until', '1h')).toBe(0);
  expect(await listed('--subject', '4711')).toBe(0);
  expect(await run('--action', 'users.gone')).toEqual([
    2,
    '',
    expect.stringContaining('must be one or more of'),
  ]);

  const file = join(tempFolder(), 'audit.ndjson');
  expect(await run('export', '--output', file)).toEqual([0, `4 entries → ${file}\n`, '']);
  expect(await run('verify', '--expect-head', head)).toEqual([
    0,
    expect.stringMatching(/^intact: 4 entries\nhead [0-9a-f]{64}\n$/),
    '',
  ]);
  expect(await run('verify', '--file', file, '--expect-head', head)).toEqual(await run('verify'));
  expect(JSON.parse(String((await run('verify', '--json'))[1]))).toMatchObject({
    intact: true,
    entries: 4,
  });

  writeFileSync(file, readFileSync(file, 'utf8').replace('"result":"found"', '"result":"refused"'));
  expect(await run('verify', '--file', file)).toEqual([
    3,
    expect.stringMatching(/^broken: entry 1: its hash/),
    '',
  ]);
  rawConnection(database).exec(
    "DROP TRIGGER audit_is_append_only; UPDATE audit SET caller = 'x' WHERE seq = 2",
  );
  expect(await run('verify')).toEqual([
    3,
    'broken: entry 2: its hash does not match its content and the entry before it (1 entry before are intact)\n',
    '',
  ]);
  expect(await run('verify', '--expect-head', 'f'.repeat(64), '--json')).toMatchObject([
    3,
    expect.any(String),
    '',
  ]);
});

it('commands that work on the ledger directly are audited with the user of the system', async () => {
  const ledger = openLedger();
  const run = (...args: string[]) => cli(args, { env: { DAWATCH_DATABASE: ledger.file } });
  expect((await run('token', 'create', '--role', 'user', '--name', 'desk')).code).toBe(0);
  for (let count = 0; count < 2; count += 1)
    expect((await run('token', 'revoke', '1')).code).toBe(0);
  expect(await run('export', '--since', '24h', '--status', 'failed')).toMatchObject({
    code: 0,
    stderr: '',
  });
  const { entries } = ledger.audit.list({ limit: 10 });
  expect(
    entries.map(({ action, subject, detail }) => [
      action,
      subject,
      detail?.replace(/\d{4}-\S+Z/, '…'),
    ]),
  ).toEqual([
    ['submissions.export', null, 'since …, failed'],
    ['tokens.revoke', '1', undefined],
    ['tokens.create', '1', 'user'],
  ]);
  for (const { caller } of entries) expect(caller).toBe(`cli:${userInfo().username}`);
});

it.each<[string[], RegExp]>([
  [['verify', '--expect-head', 'abc'], /Expected the 64 hexadecimal digits/],
  [['verify', '--file', '/nowhere/audit.ndjson'], /\/nowhere\/audit\.ndjson: ENOENT/],
  [['verify', '--file', import.meta.filename], /audit\.test\.ts, line 1: /],
])('%j exits with 2', async (args, message) => {
  const { code, stdout, stderr } = await cli(['audit', ...args]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(message);
});
