import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ExitCode } from '../../../../src/cli/exit.ts';
import { openLedger } from '../../../support/ledger/ledger-file.ts';
import { cli } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

/** Creates a ledger that was served, and returns it with its claim. */
function servedLedger(now = 0) {
  const ledger = openLedger();
  ledger.claim(now);
  ledger.close();
  return { env: { DAWATCH_DATABASE: ledger.file }, claim: `${ledger.file}.primary` };
}

it('exits with 0 without a replica, and for the claim of this machine', async () => {
  const { env, claim } = servedLedger();
  const absent = join(tempFolder(), 'primary.db');
  const allowed = await cli(['serve', '--check-primary', absent], { env });
  expect(allowed).toEqual({
    code: 0,
    stdout: `${env.DAWATCH_DATABASE} may be served: no replica yet\n`,
    stderr: '',
  });
  copyFileSync(claim, absent);
  expect((await cli(['serve', '--check-primary', absent], { env })).stdout).toMatch(
    /may be served: generation 1 of the replica\n$/,
  );
  const empty = { DAWATCH_DATABASE: join(tempFolder(), 'dawatch.db') };
  const before = join(tempFolder(), 'primary.db');
  expect((await cli(['serve', '--check-primary', before], { env: empty })).code).toBe(ExitCode.ok);
});

it('exits with 5 if there is a replica, but the ledger was not restored', async () => {
  const env = { DAWATCH_DATABASE: join(tempFolder(), 'dawatch.db') };
  const { code, stdout, stderr } = await cli(['serve', '--check-primary', servedLedger().claim], {
    env,
  });
  expect([code, stdout]).toEqual([ExitCode.server, '']);
  expect(stderr).toContain('but a replica of generation 1: restore the ledger before the start');
});

it('exits with 5 and the next step if another machine continues the replica', async () => {
  const { env } = servedLedger();
  const { claim } = servedLedger(Date.UTC(2026, 0, 2));
  const { code, stdout, stderr } = await cli(['serve', '--check-primary', claim], { env });
  expect([code, stdout]).toEqual([ExitCode.server, '']);
  expect(stderr).toContain(
    'since 2026-01-02T00:00:00.000Z, as generation 1. Keep this server and its Litestream stopped',
  );
});
