import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { type ExportQuery, LedgerExport } from '../../src/submissions/export.ts';
import { EXPORT_FORMATS } from '../../src/submissions/export-command.ts';
import type { Ledger } from '../../src/wiring/ledger-stores.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { historyOf } from '../support/ledger/histories.ts';
import {
  openLedger,
  rawConnection,
  trackRequest,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

function openExport(file: string): LedgerExport {
  const source = new LedgerExport(file);
  onTestFinished(() => source.close());
  return source;
}

function read(ledger: Ledger, query: Partial<ExportQuery> = {}) {
  const all = { since: Number.MIN_SAFE_INTEGER, until: Number.MAX_SAFE_INTEGER, now: 0 };
  return [...openExport(ledger.file).read({ ...all, ...query })];
}

const ids = (exported: ReturnType<typeof read>) =>
  exported.map(({ submission }) => submission.submissionId);

function sample(): Ledger {
  const ledger = openLedger();
  ledger.track(trackRequests(3), 10);
  ledger.record([observation('pending', 20, 's0'), observation('finalized', 30, 's1')], context());
  ledger.record([observation('finalized', 40, 's0')], context());
  return ledger;
}

describe('an export', () => {
  it('contains every submission with its history, in the order of tracking', () => {
    const ledger = sample();
    const exported = read(ledger);
    expect(exported.map(({ submission }) => submission)).toEqual(
      ledger.search.list({ limit: 10 }).submissions.toReversed(),
    );
    expect(exported.map(({ history }) => history)).toEqual(
      ['s0', 's1', 's2'].map((id) => historyOf(ledger, id)),
    );
    expect(exported.map(({ changedAt }) => changedAt)).toEqual([40, 30, 10]);
  });

  it.each<[string, Partial<ExportQuery>, string[]]>([
    ['changes since a time', { since: 30 }, ['s0', 's1']],
    ['changes before a time', { until: 30 }, ['s2']],
    ['between two', { since: 30, until: 40 }, ['s1']],
    ['submissions with one status', { filter: { statuses: ['tracking'] } }, ['s2']],
    [
      'submissions with one of two statuses',
      { filter: { statuses: ['finalized', 'tracking'] }, since: 11 },
      ['s0', 's1'],
    ],
    ['submissions of one upstream', { filter: { upstream: 'other' } }, []],
    ['submissions that ended in a period', { filter: { endedSince: 31, endedUntil: 41 } }, ['s0']],
    ['submissions with a text', { filter: { search: 'S2' } }, ['s2']],
    [
      'submissions tracked in a period',
      { filter: { trackedSince: 10, trackedUntil: 11, prefix: 's2' } },
      ['s2'],
    ],
    ['of nothing', { since: 41 }, []],
  ])('%s', (_name, query, expected) => {
    expect(ids(read(sample(), query))).toEqual(expected);
  });

  it('of submissions with these metadata', () => {
    const ledger = openLedger();
    const order = (id: string, value: unknown) =>
      trackRequest(id, { metadata: { order: value, shop: 'berlin' } });
    ledger.track([order('a', 1), order('b', '1'), order('c', 2)], 10);
    expect(ids(read(ledger, { filter: { metadata: { order: '1', shop: 'berlin' } } }))).toEqual([
      'a',
      'b',
    ]);
  });

  it('is as of one moment during writes', () => {
    const ledger = sample();
    const source = openExport(ledger.file);
    expect(source.count()).toBe(3);
    const query = { since: 0, until: 1_000, now: 0 };
    const rows = source.read(query);
    expect(rows.next().value).toMatchObject({ position: 1, submission: { status: 'finalized' } });
    ledger.cancel(['s2'], 50);
    ledger.track([trackRequest('s3')], 60);
    expect([...rows].map(({ submission }) => [submission.submissionId, submission.status])).toEqual(
      [
        ['s1', 'finalized'],
        ['s2', 'tracking'],
      ],
    );
  });

  it('moves the deadlines of open submissions by the outages, as the server does', () => {
    const ledger = sample();
    ledger.recordUpstream({
      upstream: 'default',
      at: 50,
      event: 'upstream.down',
      record: { state: 'down', outSince: 50, outageMs: 5 },
    });
    const deadlines = read(ledger, { now: 150 }).map(({ deadlineAt }) => deadlineAt - 86_400_000);
    expect(deadlines).toEqual([0, 0, 105]);
  });

  it('is refused without a ledger, and leaves other files unchanged', () => {
    const folder = tempFolder();
    const refusal = (name: string) => {
      try {
        openExport(join(folder, name));
      } catch (error) {
        if (error instanceof LedgerError) return error.problem;
        throw error;
      }
      return 'none';
    };
    expect(refusal('nowhere.db')).toBe('read_only');
    writeFileSync(join(folder, 'garbage.db'), 'garbage '.repeat(1_000));
    expect(refusal('garbage.db')).toBe('corrupt');
    writeFileSync(join(folder, 'empty.db'), '');
    expect(refusal('empty.db')).toBe('read_only');
    const db = rawConnection(join(folder, 'theirs.db'));
    db.exec('CREATE TABLE theirs (text TEXT)');
    expect(refusal('theirs.db')).toBe('foreign');
  });
});

describe('its formats', () => {
  const line = (format: 'ndjson' | 'csv', index = 0) => {
    const [exported] = read(sample()).slice(index);
    if (!exported) throw new Error('nothing was exported');
    return EXPORT_FORMATS[format].line(exported, { isTerminal: false });
  };

  it('ndjson: one line per submission, as in the response of the server', () => {
    const text = line('ndjson');
    expect(text.indexOf('\n')).toBe(text.length - 1);
    expect(JSON.parse(text)).toMatchObject({
      submission_id: 's0',
      status: 'finalized',
      finalized_at: '1970-01-01T00:00:00.040Z',
      data: { block_number: 1_234_567 },
      history: [{ status: 'tracking' }, { status: 'pending' }, { status: 'finalized' }],
    });
  });

  it('csv: a header, and lines with as many cells', () => {
    const { head } = EXPORT_FORMATS.csv;
    expect(head).toMatch(/^submission_id,upstream,status,.*,data,.*,callback_url\r\n$/);
    const open = line('csv', 2);
    expect(open).toMatch(
      /^s2,default,tracking,,,1970-01-01T00:00:00.010Z,,1970-01-01T00:00:00.010Z,/,
    );
    expect(open.split(',')).toHaveLength(head.split(',').length);
    expect(line('csv')).toContain(',1234567,0xb1,0xa1,,"{""amount_data"":""4.00 B"",');
  });
});
