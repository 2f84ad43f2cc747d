import { copyFileSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { checkPrimary } from '../../src/ledger/primary.ts';
import { backupLedger } from '../../src/ledger/restore.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, rawConnection, trackRequests } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const HOUR_MS = 3_600_000;

/**
 * Opens the ledger of a new or earlier machine as a server does; `file`: the ledger in its folder.
 */
function serve(file: string, now = 0) {
  const ledger = openLedger({ file });
  return { ledger, claimed: ledger.claim(now) };
}

const newMachine = () => join(tempFolder(), 'dawatch.db');

/** Copies the two files that are replicated, as of now, and returns where. */
async function replicate(file: string) {
  const folder = tempFolder();
  const ledger = join(folder, 'ledger');
  await backupLedger(file, ledger);
  const primary = join(folder, 'primary');
  rawConnection(`${file}.primary`).pragma('wal_checkpoint(TRUNCATE)');
  copyFileSync(`${file}.primary`, primary);
  return { ledger, primary };
}

/** A machine that died, its replica, and the machine that continues it. */
async function failedOver() {
  const old = newMachine();
  serve(old, 1).ledger.close();
  const first = await replicate(old);
  const next = newMachine();
  copyFileSync(first.ledger, next);
  const { claimed, ledger } = serve(next, 2);
  ledger.close();
  return { old, first, next, claimed, second: await replicate(next) };
}

it('the first server of a ledger is generation 1, also after restarts', () => {
  const file = newMachine();
  const { ledger, claimed } = serve(file, 7);
  expect(claimed).toMatchObject({ generation: 1, since: 7, isCopy: false });
  ledger.close();
  const changed = statSync(`${file}.primary`).mtimeMs;
  expect(serve(file, 8).claimed).toEqual(claimed);
  expect(statSync(`${file}.primary`).mtimeMs).toBe(changed);
  expect(statSync(`${file}.primary`).mode & 0o777).toBe(0o600);
});

it('a restored replica is continued as the next generation, with event numbers and a budget that include what was lost', async () => {
  const old = newMachine();
  const { ledger } = serve(old);
  ledger.track(trackRequests(3), 0);
  ledger.record([observation('finalized', 1, 's0')], context());
  ledger.upstreams.setPolling('default', 60_000, null);
  const replica = await replicate(old);
  // Not replicated: events that readers of the feed have seen.
  ledger.record([observation('finalized', 2, 's1'), observation('finalized', 2, 's2')], context());
  const seen = ledger.events.newestSeq();
  const next = newMachine();
  copyFileSync(replica.ledger, next);
  const continued = serve(next, HOUR_MS);
  expect(continued.claimed).toMatchObject({ generation: 2, since: HOUR_MS, isCopy: true });
  expect(continued.ledger.upstream('default').pollingUntil).toBe(HOUR_MS);
  expect(continued.ledger.events.missingThrough()).toBeGreaterThanOrEqual(seen);
  continued.ledger.record([observation('finalized', HOUR_MS, 's1')], context());
  expect(continued.ledger.events.newestSeq()).toBeGreaterThan(seen);
  continued.ledger.close();
  expect(serve(next, 2 * HOUR_MS).claimed).toEqual({ ...continued.claimed, isCopy: false });
});

it('refuses a server whose replica another one continues, and no other server', async () => {
  const { old, first, next, claimed, second } = await failedOver();
  const { isCopy: _, ...primary } = claimed;
  expect(checkPrimary(old, second.primary)).toEqual({ kind: 'superseded', primary });
  expect(checkPrimary(next, second.primary)).toEqual({ kind: 'allowed', primary });
  // Its own file may not have been replicated yet.
  expect(checkPrimary(next, first.primary)).toMatchObject({ kind: 'allowed' });
  expect(checkPrimary(old, join(dirname(old), 'absent'))).toEqual({
    kind: 'allowed',
    primary: undefined,
  });
  const restored = newMachine();
  copyFileSync(second.ledger, restored);
  expect(checkPrimary(restored, second.primary)).toMatchObject({ kind: 'allowed' });
});

it('refuses to begin with an empty ledger although there is a replica', async () => {
  const { second } = await failedOver();
  const file = newMachine();
  expect(checkPrimary(file, second.primary)).toMatchObject({
    kind: 'not_restored',
    primary: { generation: 2 },
  });
  writeFileSync(file, '');
  expect(checkPrimary(file, second.primary)).toMatchObject({ kind: 'not_restored' });
  expect(checkPrimary(file, join(dirname(file), 'absent'))).toEqual({
    kind: 'allowed',
    primary: undefined,
  });
});

it('a machine whose ledger was restored again may continue, and the one in between may not', async () => {
  const { old, next, second } = await failedOver();
  rmSync(old);
  copyFileSync(second.ledger, old);
  expect(checkPrimary(old, second.primary)).toMatchObject({ kind: 'allowed' });
  const { ledger, claimed } = serve(old, 3);
  expect(claimed).toMatchObject({ generation: 3, isCopy: true });
  ledger.close();
  const third = await replicate(old);
  expect(checkPrimary(next, third.primary)).toMatchObject({ kind: 'superseded' });
  expect(checkPrimary(old, third.primary)).toMatchObject({ kind: 'allowed' });
});

it('an older backup that the primary restores keeps its generation, so that machines before it stay refused', async () => {
  const { old, first, next, claimed, second } = await failedOver();
  copyFileSync(first.ledger, next);
  expect(checkPrimary(next, second.primary)).toMatchObject({ kind: 'allowed' });
  const { ledger, claimed: again } = serve(next, 3);
  expect(again).toMatchObject({
    generation: claimed.generation,
    installation: claimed.installation,
  });
  ledger.close();
  expect(checkPrimary(old, (await replicate(next)).primary)).toMatchObject({ kind: 'superseded' });
});

it('a damaged claim is written again, because the ledger has its content', () => {
  const file = newMachine();
  const { ledger, claimed } = serve(file);
  ledger.close();
  writeFileSync(`${file}.primary`, 'damaged by the disk');
  expect(serve(file).claimed).toEqual(claimed);
  expect(checkPrimary(newMachine(), `${file}.primary`).primary).toMatchObject({ generation: 1 });
});

/** Leaves the file as a process does that is killed in a transaction which has reached the disk. */
function killInTransaction(file: string) {
  const interrupted = join(tempFolder(), 'interrupted');
  const db = rawConnection(file);
  db.pragma('journal_mode = DELETE');
  db.pragma('cache_size = 1');
  db.exec('BEGIN IMMEDIATE; CREATE TABLE unfinished (content)');
  for (let row = 0; row < 50; row++) db.exec('INSERT INTO unfinished VALUES (randomblob(3000))');
  for (const suffix of ['', '-journal']) copyFileSync(file + suffix, interrupted + suffix);
  db.exec('ROLLBACK');
  db.close();
  for (const suffix of ['', '-journal']) copyFileSync(interrupted + suffix, file + suffix);
}

it.each(['', '.lock'])(
  'allows a server that was killed while it wrote its first dawatch.db%s',
  async (written) => {
    const { next, second } = await failedOver();
    killInTransaction(next + written);
    expect(existsSync(`${next}${written}-journal`)).toBe(true);
    expect(checkPrimary(next, second.primary)).toMatchObject({
      kind: 'allowed',
      primary: { generation: 2 },
    });
  },
);

it('does not check a ledger that a server is using, and changes nothing', async () => {
  const { old, second } = await failedOver();
  const before = readdirSync(dirname(old));
  checkPrimary(old, second.primary);
  expect(readdirSync(dirname(old))).toEqual(before);
  const { ledger } = serve(old);
  expect(() => checkPrimary(old, second.primary)).toThrow(/in use by another dawatch/);
  ledger.close();
  expect(existsSync(`${old}.primary`)).toBe(true);
});
