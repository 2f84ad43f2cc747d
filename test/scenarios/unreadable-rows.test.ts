import type { OutgoingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { UnreadableRow } from '../../src/domain/stored.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { goTo, SKIPPED, signIn, TEST_MS, useBrowser } from '../support/app/browser.ts';
import { readEvents } from '../support/app/event-reader.ts';
import { call, post } from '../support/app/http-calls.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, rawConnection, trackRequest } from '../support/ledger/ledger-file.ts';
import { cli } from '../support/processes/cli.ts';
import { openEventReceiver } from '../support/servers/event-receiver.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ADMIN = 'an-admin-token-for-these-tests';
const FAR = 4e12;
const DEEP = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const NO_TIME = 9_000_000_000_000_000;

/** The damage in each row of the ledger, and the fields that are shown as unreadable. */
const DAMAGES: [id: string, fields: string[], damage: (db: Database.Database, row: number) => void][] = [
  ['answer-no-json', ['data'], (db, row) => setResponse(db, row, '{"state":"Finalized"')],
  ['answer-deep', ['data'], (db, row) => setResponse(db, row, `{"data":${DEEP(20_000)}}`)],
  ['answer-just-too-deep', ['data'], (db, row) => setResponse(db, row, `{"data":${DEEP(80)}}`)],
  ['metadata-no-json', ['metadata'], (db, row) => setMetadata(db, row, '{"order":')],
  ['metadata-no-object', ['metadata'], (db, row) => setMetadata(db, row, '[1]')],
  ['metadata-deep', ['metadata'], (db, row) => setMetadata(db, row, DEEP(20_000))],
  ['no-time', ['tracked_at'], (db, row) => set(db, 'submissions', row, 'tracked_at', NO_TIME)],
  ['no-end', ['finalized_at'], (db, row) => set(db, 'submissions', row, 'finalized_at', -NO_TIME)],
];

function set(db: Database.Database, table: string, id: number, column: string, value: unknown): void {
  db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${table === 'submissions' ? 'id' : 'seq'} = ?`).run(value, id);
}

function setMetadata(db: Database.Database, row: number, text: string): void {
  set(db, 'submissions', row, 'metadata', text);
}

function setResponse(db: Database.Database, row: number, text: string): void {
  db.prepare('UPDATE history SET answer = ? WHERE submission = ?').run(text, row);
}

/** A ledger with one damaged submission of each kind between two readable ones, each finalized with an event. */
function damagedLedger(): string {
  const file = join(tempFolder(), 'ledger.db');
  const ledger = openLedger({ file });
  const ids = ['whole-first', ...DAMAGES.map(([id]) => id), 'whole-last'];
  const far = { deadlineAt: FAR, graceEndsAt: FAR, stuckAt: FAR };
  ledger.track(
    ids.map((id) => trackRequest(id, { ...far, metadata: { order: 1 } })),
    1_000,
  );
  ledger.record(
    ids.map((id) => observation('finalized', 2_000, id)),
    context(),
  );
  ledger.recordUpstream({
    upstream: 'default',
    at: 2_500,
    event: 'upstream.up',
    record: { state: 'closed', outSince: null, outageMs: 0 },
  });
  const alert = { rule: 'stuck', subject: 'default', summary: 'one is stuck', count: 1, since: 3_000 } as const;
  for (const times of [
    { now: 3_000, remindAfterMs: 1 },
    { now: 4_000, remindAfterMs: 1 },
  ])
    ledger.alerts.reconcile([alert], times);
  ledger.close();
  const db = rawConnection(file);
  for (const trigger of ['history_is_append_only', 'events_never_change']) db.exec(`DROP TRIGGER ${trigger}`);
  const rowOf = db.prepare('SELECT id FROM submissions WHERE submission_id = ?').pluck();
  for (const [id, , damage] of DAMAGES) damage(db, rowOf.get(id) as number);
  const alerts = db.prepare("SELECT seq FROM outbox WHERE type LIKE 'alert.%' ORDER BY seq").pluck().all() as number[];
  set(db, 'outbox', alerts[0] ?? 0, 'detail', '{"rule":');
  set(db, 'outbox', alerts[1] ?? 0, 'type', 'alert.raised\ndata: forged');
  db.close();
  return file;
}

const admin = { 'x-api-key': [], authorization: `Bearer ${ADMIN}` };

/** A server on such a ledger; its upstream is the sandbox, which knows none of the ids. */
async function openDamaged() {
  const file = damagedLedger();
  const sandbox = await startSandbox({ options: { speed: 200 } });
  onTestFinished(() => sandbox.close());
  const log: string[] = [];
  const { url, close } = await openApp({
    database: file,
    upstreamUrl: sandbox.url,
    adminToken: ADMIN,
    webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
    alerts: { check_s: 3_600 },
    onLog: (line) => log.push(line),
  });
  onTestFinished(close);
  const json = async (path: string, headers: OutgoingHttpHeaders = {}) => {
    const { status, text } = await call(url, path, { headers });
    expect([path, status]).toEqual([path, 200]);
    return JSON.parse(text);
  };
  return { file, url, log, json };
}

/** Returns the log lines about unreadable rows. */
function reportedOf(log: readonly string[]): { row: string; row_id: string; level: string; unreadable: string }[] {
  return log.filter((line) => line.includes('"ledger.row_unreadable"')).map((line) => JSON.parse(line));
}

describe.skipIf(SKIPPED)('on the dashboard', { timeout: TEST_MS }, () => {
  const browser = useBrowser();

  it('unreadable rows are listed and shown', async () => {
    const { url } = await openDamaged();
    const page = await browser.open(url);
    await signIn(page, ADMIN);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await goTo(page, 'submissions');
    for (const [id] of DAMAGES) await page.getByRole('row').filter({ hasText: id }).waitFor();
    await goTo(page, 'submissions/metadata-deep');
    await page.getByText('Unreadable fields').waitFor();
    await page.getByRole('main').getByText('metadata', { exact: true }).waitFor();
  });
});

describe('unreadable rows', () => {
  it('are shown individually, with a mark', async () => {
    const { json } = await openDamaged();
    for (const [id, fields] of DAMAGES) {
      const one = await json(`/v1/submissions/${id}`);
      expect(one).toMatchObject({ submission_id: id, status: 'finalized', unreadable: fields });
      for (const field of fields) if (!field.endsWith('_at')) expect(one[field]).toBeNull();
      expect(one.history).toHaveLength(2);
    }
  });

  it('are in lists with a mark, and readable rows without one', async () => {
    const { json } = await openDamaged();
    const expected = Object.fromEntries([
      ['whole-first', undefined],
      ...DAMAGES.map(([id, fields]) => [id, fields]),
      ['whole-last', undefined],
    ]);
    for (const query of ['', '?status=finalized', '?prefix=a', '?prefix=m', '?prefix=n', '?prefix=w']) {
      const { submissions } = await json(`/v1/submissions${query}`);
      expect(submissions.length).toBeGreaterThan(0);
      for (const { submission_id, unreadable } of submissions) expect(unreadable).toEqual(expected[submission_id]);
    }
    expect((await json('/v1/submissions')).submissions).toHaveLength(DAMAGES.length + 2);
  });

  it('can be tracked, awaited and cancelled', async () => {
    const { json, url } = await openDamaged();
    const ids = DAMAGES.map(([id]) => id);
    const tracked = JSON.parse((await post(url, { submission_ids: ids })).text);
    expect(tracked).toMatchObject({ accepted: 0, already_final: ids.length });
    for (const [id, fields] of DAMAGES) {
      expect(await json(`/v1/submissions/${id}/wait?timeout_s=0`)).toMatchObject({ unreadable: fields });
      const { status, text } = await call(url, `/v1/submissions/${id}`, { method: 'DELETE' });
      expect([status, JSON.parse(text).unreadable]).toEqual([200, fields]);
    }
  });

  it('are on the live feed with the same marks, and as a gap if an event is unreadable', async () => {
    const { url, log } = await openDamaged();
    const reader = await readEvents(url, '?after=0');
    const newest = DAMAGES.length + 2 + 3;
    await reader.reaches(newest);
    const ofSubmission = Object.fromEntries(
      reader.received.flatMap(({ body: { data } }) =>
        'submission' in data ? [[data.submission.submission_id, data.submission.unreadable]] : [],
      ),
    );
    for (const [id, fields] of DAMAGES) expect(ofSubmission[id], id).toEqual(fields);
    expect(ofSubmission).toMatchObject({ 'whole-first': undefined, 'whole-last': undefined });
    expect(reader.gaps).toEqual([newest - 1, newest]);
    // A filter cannot decide whether it matches an unreadable event.
    const filtered = await readEvents(url, '?after=0&type=upstream.*');
    await filtered.reaches(newest);
    expect([filtered.received.map(({ type }) => type), filtered.gaps]).toEqual([['upstream.up'], [newest - 1, newest]]);
    const reported = reportedOf(log).flatMap(({ row, unreadable }) => (row === 'event' ? [unreadable] : []));
    expect(reported).toEqual([
      ...DAMAGES.map(([, fields]) => (fields[0] === 'data' ? 'previous_data, data' : fields.join(', '))),
      'its alert cannot be read',
      'its type is unknown',
    ]);
  });

  it('do not affect the overview, the metrics and readiness', async () => {
    const { json, url } = await openDamaged();
    await json('/v1/submissions');
    expect(await json('/v1/overview')).toMatchObject({ submissions: { finalized: DAMAGES.length + 2 } });
    expect((await call(url, '/readyz')).status).toBe(200);
    const { text } = await call(url, '/metrics');
    const count = Number(/^dawatch_ledger_unreadable_rows_total\{kind="submission"\} (\d+)/m.exec(text)?.[1]);
    expect(count).toBe(DAMAGES.length);
  });

  it('are logged once each, however often they are read', async () => {
    const { json, log } = await openDamaged();
    await json('/v1/submissions');
    await json('/v1/submissions');
    const lines = reportedOf(log);
    for (const [id, fields] of DAMAGES) {
      const ownLines = lines.filter(({ row, row_id }) => row === 'submission' && row_id === id);
      expect(ownLines, id).toHaveLength(1);
      expect(ownLines[0]).toMatchObject({ level: 'error', unreadable: fields.join(', ') });
    }
    expect(log.filter((line) => line.includes('http.failed'))).toEqual([]);
  });

  it('cause a poll if the response of a finalized submission is unreadable', async () => {
    const { json, url } = await openDamaged();
    const { status, text } = await call(url, '/v1/get_submission_info?submission_id=answer-no-json');
    // The sandbox knows no such id.
    expect([status, text]).not.toEqual([200, '{"state":"Finalized"']);
    expect((await json('/v1/get_submission_info?submission_id=whole-first')).state).toBe('Finalized');
  });

  it.each(['ndjson', 'csv'])('are all in an export as %s, which reports their number', async (format) => {
    const file = damagedLedger();
    const { code, stdout, stderr } = await cli(['export', '--format', format], { env: { DAWATCH_DATABASE: file } });
    expect(code).toBe(0);
    for (const [id, fields] of DAMAGES) {
      const line = stdout.split('\n').find((text) => text.includes(id)) ?? '';
      if (format === 'ndjson') expect(JSON.parse(line).unreadable).toEqual(fields);
      else expect(line).toContain(fields.join(' '));
    }
    expect(stdout).toContain('whole-last');
    expect(stderr).toContain(`${DAMAGES.length} submissions cannot be read`);
  });

  it('are shown on the command line', async () => {
    const { url } = await openDamaged();
    const env = { DAWATCH_URL: url, DAWATCH_API_KEY: API_KEY };
    const listed = await cli(['status', '--limit', '100'], { env });
    expect(listed.code).toBe(0);
    for (const [id, fields] of DAMAGES) {
      expect(listed.stdout).toContain(id);
      const shown = await cli(['status', id], { env });
      expect([shown.code, shown.stdout]).toEqual([0, expect.stringMatching(`unreadable +${fields.join(', ')}`)]);
    }
  });

  it('of webhooks are shown and receive nothing, and events for the others arrive', async () => {
    const { json, url, file, log } = await openDamaged();
    const receiver = await openEventReceiver();
    const create = async (types: string[]) => {
      const body = { url: receiver.url, types };
      return JSON.parse((await call(url, '/v1/webhooks', { method: 'POST', headers: admin, body })).text);
    };
    const [readable, noTypes, noFilter] = [await create(['*']), await create(['*']), await create(['*'])];
    receiver.secret = readable.secret;
    const db = rawConnection(file);
    const damage = (id: string, column: string, text: string) =>
      db.prepare(`UPDATE webhooks SET ${column} = ? WHERE webhook_id = ?`).run(text, id);
    damage(noTypes.id, 'types', '["submission.');
    damage(noFilter.id, 'metadata', DEEP(20_000));
    // The ledger caches webhooks until one changes.
    const patch = { method: 'PATCH', headers: admin, body: { description: 'changed' } };
    expect((await call(url, `/v1/webhooks/${readable.id}`, patch)).status).toBe(200);
    const { webhooks } = await json('/v1/webhooks', admin);
    const marks = Object.fromEntries(
      webhooks.map((one: { id: string; unreadable?: string[] }) => [one.id, one.unreadable]),
    );
    expect(marks).toMatchObject({ [readable.id]: undefined, [noTypes.id]: ['types'], [noFilter.id]: ['metadata'] });
    const tested = JSON.parse(
      (await call(url, `/v1/webhooks/${readable.id}/test`, { method: 'POST', headers: admin })).text,
    );
    expect(tested.state).toBe('waiting');
    await vi.waitFor(() => expect(receiver.bodies.size).toBe(1), 5_000);

    // Unreadable events for a readable webhook.
    const due = db
      .prepare("SELECT seq FROM outbox WHERE type LIKE 'submission.%' OR type LIKE 'alert.%'")
      .pluck()
      .all();
    const add = db.prepare(
      `INSERT INTO deliveries (event, destination, state, next_at, created_at) VALUES (?, ?, 'waiting', 1, ?)`,
    );
    for (const seq of due) add.run(seq, `webhook:${readable.id}`, seq === due[0] ? NO_TIME : 1);
    const last = db.prepare('SELECT max(id) FROM deliveries').pluck().get();
    db.prepare(
      "UPDATE deliveries SET dead_reason = 'moon', state = 'dead', next_at = NULL, ended_at = 1 WHERE id = ?",
    ).run(last);
    db.close();
    await call(url, `/v1/webhooks/${readable.id}/test`, { method: 'POST', headers: admin });
    await vi.waitFor(() => expect(receiver.bodies.size).toBe(due.length), 10_000);
    expect(receiver.invalid).toEqual([]);
    const bodies = [...receiver.bodies.values()].flatMap((each) => [...each]).join('\n');
    for (const [id] of DAMAGES) expect(bodies).toContain(`"submission_id":"${id}"`);

    const { deliveries } = await json('/v1/deliveries?limit=1000', admin);
    const undeliverable = deliveries.filter((one: { dead_reason: string }) => one.dead_reason === 'undeliverable');
    expect(undeliverable).toMatchObject([{ event_type: 'alert.raised' }]);
    expect(await json(`/v1/deliveries/${undeliverable[0].id}`, admin)).toMatchObject({ event: null });
    expect(reportedOf(log).filter(({ unreadable }) => unreadable === 'its alert cannot be read')).toHaveLength(1);
    expect(deliveries.length).toBeGreaterThan(due.length);
    const unreadable = deliveries.flatMap((one: { unreadable?: string[] }) => one.unreadable ?? []);
    expect(unreadable.toSorted()).toEqual(['created_at', 'dead_reason']);
    for (const { id } of deliveries) await json(`/v1/deliveries/${id}`, admin);
    const env = { DAWATCH_URL: url, DAWATCH_API_KEY: ADMIN, DAWATCH_ADMIN_TOKEN: ADMIN };
    for (const args of [
      ['deliveries', 'list'],
      ['webhooks', 'list'],
    ])
      expect((await cli(args, { env })).code).toBe(0);
  });

  it('of open submissions recover: the next response replaces the unreadable data, and its event is delivered', async () => {
    const folder = tempFolder();
    const ledger = openLedger({ file: join(folder, 'ledger.db') });
    const hook = {
      url: 'https://h.example/',
      types: ['*'],
      metadata: null,
      description: '',
      signature: 'v1',
      enabled: true,
    } as const;
    const secret = { secret: 'whsec_x', publicKey: null };
    ledger.webhooks.create(hook, secret, 0);
    ledger.webhooks.ensureCallbacks(() => secret, 0);
    ledger.track([trackRequest('a', { metadata: { x: 1 }, callbackUrl: 'https://c.example/' })], 0);
    ledger.record([observation('pending', 1, 'a')], context());
    const db = rawConnection(ledger.file);
    db.exec('DROP TRIGGER history_is_append_only');
    db.exec(`UPDATE submissions SET metadata = '{', callback_url = 'no address'`);
    db.exec(`UPDATE history SET answer = '{'`);
    const reported: UnreadableRow[] = [];
    ledger.routes.onUnreadable = (row) => reported.push(row);
    ledger.record([observation('finalized', 2, 'a')], context());
    expect(ledger.submissions.get('a')).toMatchObject({ status: 'finalized', unreadable: ['metadata'] });
    expect(ledger.deliveries.destinations()).toHaveLength(1);
    expect(reported).toEqual([{ kind: 'submission', id: 'a', fields: ['callback_url'] }]);
    expect(ledger.events.after(0, 10)).toMatchObject([{ submission: { unreadable: ['metadata'] } }]);
  });

  it('do not prevent the replay of events that a webhook and the callbacks missed while they were disabled', () => {
    const ledger = openLedger({ file: join(tempFolder(), 'ledger.db') });
    const hook = { url: 'https://h.example/', types: ['*'], description: '', signature: 'v1', enabled: true } as const;
    const secret = { secret: 'whsec_x', publicKey: null };
    const { id } = ledger.webhooks.create({ ...hook, metadata: null }, secret, 0);
    const filtered = ledger.webhooks.create({ ...hook, metadata: { order: 1 } }, secret, 0);
    ledger.webhooks.ensureCallbacks(() => secret, 0);
    const all = [id, filtered.id, 'callbacks'];
    for (const one of all) ledger.webhooks.update(one, { enabled: false }, 1);
    const tracked = { metadata: { order: 1 }, callbackUrl: 'https://c.example/' };
    ledger.track([trackRequest('damaged', tracked), trackRequest('whole', tracked)], 2);
    ledger.record([observation('finalized', 3, 'damaged'), observation('finalized', 3, 'whole')], context());
    rawConnection(ledger.file).exec(
      "UPDATE submissions SET metadata = '{', callback_url = 'no address' WHERE submission_id = 'damaged'",
    );
    const reported: UnreadableRow[] = [];
    ledger.routes.onUnreadable = (row) => reported.push(row);
    for (const one of all) ledger.webhooks.update(one, { enabled: true }, 4);
    const counts = all.map((one) => ledger.deliveries.replayDead(`webhook:${one}`, 0, 5));
    expect(counts).toEqual([2, 1, 1]);
    expect(reported).toEqual([{ kind: 'submission', id: 'damaged', fields: ['callback_url'] }]);
  });

  it('are pruned when they expire', async () => {
    const ledger = openLedger({ file: damagedLedger() });
    const query = { after: { endedAt: 0, id: 0 }, before: { endedAt: 10_000, id: 0 }, limit: 100 };
    // The newest of all stays, because its number would be reused.
    expect(ledger.pruning.submissions(query)).toMatchObject({ deleted: DAMAGES.length + 1 });
  });

  it('do not prevent a start, and the counters of the last hour are restored', async () => {
    const second = await openApp({ database: damagedLedger() });
    onTestFinished(() => second.close());
    expect((await call(second.url, '/v1/overview')).status).toBe(200);
  });
});
