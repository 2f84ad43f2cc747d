import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CredentialStore } from '../../src/access/credentials-store.ts';
import { LedgerError } from '../../src/ledger/errors.ts';
import { openBeside } from '../../src/ledger/open.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, rawConnection, trackRequests } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const CREDENTIAL = { hash: Buffer.alloc(32, 7), role: 'service', name: 'billing' } as const;

/** Opens a credential store like a short command; closed when the test ends. */
function beside(file: string): CredentialStore {
  const { database, close } = openBeside({ file, now: 0 });
  onTestFinished(close);
  return new CredentialStore(database);
}

function refusal(file: string): LedgerError {
  try {
    beside(file);
  } catch (error) {
    if (error instanceof LedgerError) return error;
    throw error;
  }
  throw new Error('it was opened');
}

/** Creates a ledger whose file claims another number of migrations. */
function withSchema(alter: (version: number) => number): { file: string; end: () => void } {
  const ledger = openLedger();
  const db = rawConnection(ledger.file);
  db.pragma(`user_version = ${alter(Number(db.pragma('user_version', { simple: true })))}`);
  return { file: ledger.file, end: () => ledger.close() };
}

const isMissing = (program: string) =>
  !process.env.CI && spawnSync(program, ['--version']).status !== 0;

const IN_PYTHON = `
import sqlite3, sys
ledger = sqlite3.connect(sys.argv[1])
copy = sqlite3.connect(':memory:')
copy.executescript('\\n'.join(ledger.iterdump()))
for db in (ledger, copy):
    print(db.execute('PRAGMA integrity_check').fetchone()[0])
    print(db.execute('SELECT count(*) FROM history').fetchone()[0])`;
const IN_A_SHELL = `
for db in "$1" "$1.copy"; do
  test -e "$db" || sqlite3 "$1" .dump | sqlite3 "$db"
  sqlite3 "$db" 'PRAGMA integrity_check; SELECT count(*) FROM history'
done`;

it.each(
  [
    ['sqlite3', 'sh', ['-c', IN_A_SHELL, 'sh']] as const,
    ['python3', 'python3', ['-c', IN_PYTHON]] as const,
  ].filter(([program]) => !isMissing(program)),
)(
  '%s of the system finds the ledger of a running server intact, and reloads a dump of it',
  (_name, program, args) => {
    const server = openLedger();
    server.track(trackRequests(3), 0);
    server.record([observation('finalized', 1, 's0')], context());
    const output = execFileSync(program, [...args, server.file], { encoding: 'utf8' });
    expect(output.trim().split('\n')).toEqual(['ok', '4', 'ok', '4']);
  },
);

describe('a command beside a server', () => {
  it("and the server see each other's writes at the next read", () => {
    const server = openLedger();
    const command = beside(server.file);
    const { id } = command.add(CREDENTIAL, 5);
    expect(server.credentials.find(CREDENTIAL.hash, 6)).toMatchObject({ id, name: 'billing' });
    server.credentials.revoke(id, 6);
    expect(command.page({ limit: 9 }).credentials).toMatchObject([{ id, revokedAt: 6 }]);
    expect(command.find(CREDENTIAL.hash, 6)).toBeUndefined();
  });

  it('refuses a ledger that a server uses with an older schema, and does not migrate it', () => {
    const { file } = withSchema((version) => version - 1);
    expect(refusal(file)).toMatchObject({
      problem: 'locked',
      message: expect.stringContaining(`${file} is in use by another dawatch`),
    });
  });

  it('refuses a newer schema, whether a server runs or not', () => {
    const { file, end } = withSchema((version) => version + 1);
    expect(refusal(file).message).toContain('was written by a newer dawatch');
    end();
    expect(refusal(file).message).toContain('was written by a newer dawatch');
  });
});

describe('a command without a server', () => {
  it('does not create a ledger, which would be empty and in the wrong folder', () => {
    const folder = join(tempFolder(), 'some', 'where');
    expect(refusal(join(folder, 'dawatch.db')).message).toMatch(
      /^there is no ledger at .*--config <file> or DAWATCH_DATABASE/,
    );
    expect(existsSync(folder)).toBe(false);
    const empty = join(tempFolder(), 'empty.db');
    writeFileSync(empty, '');
    expect(refusal(empty).message).toContain(`there is no ledger at ${empty}`);
    expect(readdirSync(dirname(empty))).toEqual(['empty.db']);
  });

  it('fails with an explanation when another process writes for too long', () => {
    const { file } = openLedger();
    const { database, close } = openBeside({ file, now: 0 });
    onTestFinished(close);
    database.connection.pragma('busy_timeout = 1');
    const other = rawConnection(file);
    other.exec('BEGIN IMMEDIATE');
    const store = new CredentialStore(database);
    expect(() => store.add(CREDENTIAL, 5)).toThrow(LedgerError);
    other.exec('ROLLBACK');
    expect(store.add(CREDENTIAL, 5).name).toBe('billing');
  });
});
