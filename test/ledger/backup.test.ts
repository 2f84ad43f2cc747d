import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { backupLedger } from '../../src/ledger/restore.ts';
import { context, historyOf, observation } from '../support/ledger/domain.ts';
import {
  allSubmissions,
  integrityOf,
  isUnbroken,
  openLedger,
  rawConnection,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const BUSY = new URL('./busy-child.ts', import.meta.url);

function filesBeside(target: string): string[] {
  return readdirSync(dirname(target)).sort();
}

describe('a backup', () => {
  it('contains everything committed before it, while a server uses the ledger', async () => {
    const ledger = openLedger();
    ledger.track(trackRequests(500), 0);
    ledger.record([observation('finalized', 5, 's7')], context());
    const target = join(tempFolder(), 'copy.db');
    const { bytes } = await backupLedger(ledger.file, target);
    expect(bytes).toBe(statSync(target).size);
    expect(statSync(target).mode & 0o777).toBe(0o600);
    expect(filesBeside(target)).toEqual(['copy.db']);
    const copy = openLedger({ file: target });
    expect(copy.search.list({ limit: 1_000 })).toEqual(ledger.search.list({ limit: 1_000 }));
    expect(historyOf(copy, 's7')).toEqual(historyOf(ledger, 's7'));
  });

  it('completes while another process writes without a pause, and is as of one moment', async () => {
    const file = join(tempFolder(), 'dawatch.db');
    const first = openLedger({ file });
    const metadata = { filler: 'x'.repeat(4_000) };
    first.track(
      trackRequests(2_000, 'old').map((request) => ({ ...request, metadata })),
      0,
    );
    first.close();
    const writer = startChild(BUSY, [file, '1']);
    await writer.message();
    const target = join(tempFolder(), 'copy.db');
    await backupLedger(file, target);
    const during = writer.messages.length;
    await writer.message();
    await writer.kill();
    expect(writer.messages.length, 'it wrote on').toBeGreaterThan(during);
    expect(filesBeside(target)).toEqual(['copy.db']);
    expect(integrityOf(target)).toBe('ok');
    const copy = openLedger({ file: target });
    const kept = allSubmissions(copy);
    expect(kept.length).toBeGreaterThanOrEqual(2_000);
    for (const { submissionId } of kept.slice(0, 50))
      expect(isUnbroken(historyOf(copy, submissionId))).toBe(true);
  });

  it('keeps no snapshot of the ledger while it checks the copy, so that its log can be shortened', async () => {
    const ledger = openLedger();
    const target = join(tempFolder(), 'copy.db');
    const busy: unknown[] = [];
    await backupLedger(ledger.file, target, {
      verify: true,
      onStep({ kind }) {
        ledger.track(trackRequests(5, `${busy.length}-${kind}`), 0);
        const other = rawConnection(ledger.file);
        other.pragma('busy_timeout = 0');
        const [result] = other.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
        busy.push([kind, result?.busy]);
      },
    });
    expect(busy[0]).toEqual(['copying', 1]);
    expect(busy.at(-1)).toEqual(['checking', 0]);
  });

  it('is refused while another one writes the same file, which is complete in the end', async () => {
    const ledger = openLedger();
    ledger.track(trackRequests(2_000), 0);
    const target = join(tempFolder(), 'copy.db');
    const first = backupLedger(ledger.file, target);
    await expect(backupLedger(ledger.file, target)).rejects.toMatchObject({
      name: 'LedgerError',
      problem: 'locked',
      message: expect.stringMatching(/another process writes/),
    });
    await first;
    expect(filesBeside(target)).toEqual(['copy.db']);
    expect(openLedger({ file: target }).submissions.get('s1999')).toBeDefined();
  });

  it.each([
    ['no ledger', undefined, 'read_only'],
    ['no database', 'garbage '.repeat(1_000), 'corrupt'],
  ])('is refused where there is %s, and leaves nothing behind', async (_name, content, problem) => {
    const file = join(tempFolder(), 'dawatch.db');
    if (content !== undefined) writeFileSync(file, content);
    const target = join(tempFolder(), 'copy.db');
    await expect(backupLedger(file, target)).rejects.toMatchObject({
      name: 'LedgerError',
      problem,
    });
    expect(filesBeside(target)).toEqual([]);
    expect(existsSync(file)).toBe(content !== undefined);
  });

  it('of a damaged ledger is not kept', async () => {
    const ledger = openLedger();
    ledger.track(trackRequests(2_000), 0);
    ledger.close();
    const bytes = readFileSync(ledger.file);
    bytes.fill(0xa5, 4_096 * 60, 4_096 * 61);
    writeFileSync(ledger.file, bytes);
    const target = join(tempFolder(), 'copy.db');
    await expect(backupLedger(ledger.file, target)).rejects.toMatchObject({
      name: 'LedgerError',
      problem: 'corrupt',
    });
    expect(filesBeside(target)).toEqual([]);
  });
});
