import { describe, expect, it } from 'vitest';
import { vacuumBeside } from '../../../../src/ledger/maintenance/vacuum.ts';
import { integrityOf, openLedger, rawConnection, trackRequest } from '../../../support/ledger/ledger-file.ts';
import { cli } from '../../../support/processes/cli.ts';

const EMAIL = 'ada@example.com';
const run = async (database: string, ...args: string[]) => {
  const { code, stdout, stderr } = await cli(['erase', ...args], { env: { DAWATCH_DATABASE: database } });
  return { code, stdout, stderr };
};

function openFilled() {
  const ledger = openLedger();
  ledger.track([trackRequest('a', { metadata: { user: EMAIL } }), trackRequest('b')], 1);
  return ledger;
}

/** A ledger without rows about the person, but with some that were deleted and not overwritten. */
function withRemains() {
  const ledger = openLedger();
  const metadata = { user: EMAIL };
  ledger.track(
    Array.from({ length: 40 }, (_, index) => trackRequest(`s${index}`, { metadata })),
    1,
  );
  const db = rawConnection(ledger.file);
  db.pragma('secure_delete = OFF');
  db.exec('DELETE FROM history WHERE submission % 2 = 0; DELETE FROM submissions WHERE id % 2 = 0');
  db.exec('UPDATE submissions SET metadata = NULL');
  return { file: ledger.file, ledger };
}

describe('erase', () => {
  it('finds a person beside a running server, erases the data, and proves that it is gone', async () => {
    const { file, submissions } = openFilled();
    const before = await run(file, '--email', EMAIL, '--check');
    expect(before).toMatchObject({ code: 3, stderr: '' });
    expect(before.stdout).toContain('found: 1 row of submissions.metadata\n');
    const erased = await run(file, '--email', EMAIL);
    expect(erased).toMatchObject({ code: 0, stderr: '' });
    expect(erased.stdout).toMatch(
      /^erased: submissions 1, history 0, events 0, alerts 0, attempts 0, report_rows 0, audit_persons 0, people 0\nnot found in \d+ bytes of .*\nnot found in 0 bytes of .*-wal\nnot covered: backups/,
    );
    expect(submissions.get('a')).toMatchObject({ metadata: null, status: 'tracking' });
    expect((await run(file, '--email', EMAIL, '--check')).code).toBe(0);
  });

  it.each(['beside a server', 'without one'])('rewrites a ledger with remains in unused space %s', async (where) => {
    const { file, ledger } = withRemains();
    const remaining = await run(file, '--email', EMAIL, '--check');
    expect([remaining.code, remaining.stdout]).toEqual([
      3,
      expect.stringMatching(/^found [1-9]\d* times? in \d+ bytes/m),
    ]);
    if (where === 'without one') ledger.close();
    expect(await run(file, '--email', EMAIL)).toMatchObject({ code: 0, stderr: '' });
    expect((await run(file, '--email', EMAIL, '--check')).code).toBe(0);
    if (where === 'without one') return;
    expect(ledger.track([trackRequest('later')], 2).kind).toBe('tracked');
    expect(ledger.submissions.get('s0')?.status).toBe('tracking');
    expect(integrityOf(file)).toBe('ok');
  });

  it('leaves a ledger of a server that is too large to be rewritten beside it unchanged', () => {
    const { file } = withRemains();
    const bytes = 4_096 * Number(rawConnection(file).pragma('page_count', { simple: true }));
    expect([vacuumBeside(file, 1, bytes - 1), vacuumBeside(file, 1, bytes)]).toEqual([false, true]);
  });

  it('names rows that it cannot change, and exits with 3', async () => {
    const ledger = openLedger();
    ledger.track([trackRequest(`order:${EMAIL}`)], 1);
    const { code, stdout } = await run(ledger.file, '--email', EMAIL);
    expect(code).toBe(3);
    expect(stdout).toContain('found: 1 row of submissions.submission_id\n');
  });

  it.each<[string[], string]>([
    [[], 'give either --email or --metadata'],
    [['--email', EMAIL, '--metadata', 'a=b'], 'give either --email or --metadata'],
    [['--email', 'ada'], '--email is not an e-mail address'],
    [['--metadata', 'customer'], 'Expected key=value'],
    [['--metadata', '=8831'], 'Expected key=value'],
    [['--metadata', 'customer='], 'Expected key=value'],
    [['--email', EMAIL], 'there is no ledger'],
  ])('%j exits with 2', async (args, message) => {
    const { code, stdout, stderr } = await run('/nowhere/dawatch.db', ...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});
