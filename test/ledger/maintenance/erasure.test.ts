import { describe, expect, it } from 'vitest';
import type { ErasureTarget } from '../../../src/domain/audit/personal-value.ts';
import type { Submission } from '../../../src/domain/submission.ts';
import { checkAudit } from '../../../src/ledger/access/audit-check.ts';
import type { ErasureResult } from '../../../src/ledger/maintenance/erasure.ts';
import { checkErased, isErased } from '../../../src/ledger/maintenance/erasure-check.ts';
import { context, observation } from '../../support/ledger/domain.ts';
import { historyOf } from '../../support/ledger/histories.ts';
import { integrityOf, openLedger, rawConnection, trackRequest } from '../../support/ledger/ledger-file.ts';

const EMAIL = 'ada@example.com';
const ACTOR = { name: 'the admin', credentialId: null, address: null };
const ADA: ErasureTarget = { kind: 'email', email: 'Ada@Example.com' };
const CUSTOMER: ErasureTarget = { kind: 'metadata', key: 'customer', value: '8831' };

function erase(ledger: ReturnType<typeof openLedger>, target: ErasureTarget): ErasureResult {
  const run = ledger.erasure.run({ target, actor: ACTOR, now: () => 9 });
  for (;;) {
    const step = run.next();
    if (step.done) return step.value;
  }
}

/** A ledger with data of Ada in every place that may have it, and of others. */
function openFilled() {
  const ledger = openLedger();
  const secret = { secret: 'whsec_x', publicKey: null };
  const webhook = { url: 'https://a.example', types: ['*'], metadata: null, description: '', signature: 'v1' as const };
  ledger.webhooks.create({ ...webhook, enabled: true }, secret, 0);
  const metadata: Record<string, Record<string, unknown> | null> = {
    byEmail: { user: EMAIL, name: 'Ada Example' },
    nested: { contact: [{ text: `write to\n${EMAIL.toUpperCase()}.` }] },
    byCustomer: { customer: 8831, name: 'Ada Example' },
    other: { user: 'dada@example.com', customer: '88310' },
    none: null,
  };
  ledger.track(
    Object.entries(metadata).map(([id, value]) => trackRequest(id, { metadata: value })),
    1,
  );
  const envelope = `{"id":"none","state":"Finalized","data":{"user_id":"${EMAIL.replace('@', '\\u0040')}"}}`;
  const verdict = { kind: 'finalized', state: 'Finalized', error: null, envelope, blockNumber: null } as const;
  ledger.record([observation(verdict, 20, 'none')], context());
  ledger.cancel(['byEmail', 'byCustomer'], 30);
  // The last row of history is the end of byCustomer.
  ledger.reports.count({ metadataKey: 'user', now: 40, limit: 7 });
  ledger.reports.count({ metadataKey: 'customer', now: 40, limit: 7 });
  const { deliveries } = ledger.deliveries.list({ limit: 100 });
  const insert = rawConnection(ledger.file).prepare(
    'INSERT INTO attempts (delivery, at, duration_ms, error, response) VALUES (?, 1, 1, ?, ?)',
  );
  for (const { id } of deliveries) insert.run(id, null, 'thank you, Ada');
  insert.run(deliveries[0]?.id, `refused for <${EMAIL}>`, null);
  rawConnection(ledger.file).exec(
    `INSERT INTO alerts (rule, subject, summary, since) VALUES ('stuck', 'default', 'Refused for ${EMAIL}', 1)`,
  );
  const about = { rule: 'stuck', subject: 'default' } as const;
  ledger.mutes.add({ ...about, from: 1, until: 100, reason: 'Ask Ada@Example.com, the owner' }, 'the admin', 1);
  ledger.mutes.add({ ...about, from: 1, until: 100, reason: 'Ask dada@example.com' }, 'the admin', 1);
  ledger.audit.append(ACTOR, 5, { action: 'users.get', result: 'found', email: EMAIL });
  ledger.audit.append(ACTOR, 6, { action: 'users.get', result: 'found', email: 'dada@example.com' });
  return ledger;
}

const metadataOf = (ledger: ReturnType<typeof openLedger>, id: string) => ledger.submissions.get(id)?.metadata;

describe('an erasure by e-mail', () => {
  it('removes the address from every table, keeps everything else, and tracking continues', () => {
    const ledger = openFilled();
    const events = ledger.events.after(0, 100).length;
    expect(erase(ledger, ADA)).toEqual({
      erased: {
        submissions: 2,
        history: 1,
        events: 0,
        alerts: 2,
        attempts: 2,
        report_rows: 1,
        audit_persons: 1,
        people: 0,
      },
      logTruncated: true,
    });
    for (const id of ['byEmail', 'nested']) expect(metadataOf(ledger, id)).toBeNull();
    expect(metadataOf(ledger, 'other')).toEqual({ user: 'dada@example.com', customer: '88310' });
    expect(ledger.submissions.get('nested')).toMatchObject({ status: 'tracking', watched: true });
    expect(historyOf(ledger, 'none').at(-1)).toMatchObject({
      status: 'finalized',
      envelope: '{"id":"none","state":"Finalized","data":{"user_id":"[erased]"}}',
    });
    const attempts = ledger.deliveries
      .list({ limit: 100 })
      .deliveries.flatMap(({ id }) => ledger.deliveries.get(id)?.attempts ?? [])
      .map(({ error, response }) => error ?? response);
    expect(attempts.toSorted()).toEqual(['[erased]', 'refused for <[erased]>', 'thank you, Ada', 'thank you, Ada']);
    const { mutes } = ledger.mutes.list({ limit: 10, now: 9 });
    expect(mutes.map(({ reason }) => reason)).toEqual(['Ask dada@example.com', 'Ask [erased], the owner']);
    const { alerts } = ledger.alerts.list({ state: 'all', limit: 10, now: 9 });
    expect(alerts.map(({ summary }) => summary)).toEqual(['Refused for [erased]']);
    expect(ledger.events.after(0, 100)).toHaveLength(events);
    expect(integrityOf(ledger.file)).toBe('ok');
    ledger.record([observation('finalized', 40, 'nested')], context());
    expect(ledger.submissions.get('nested')?.status).toBe('finalized');
  });

  it('is audited without the address, and the chain of the audit stays intact', async () => {
    const ledger = openFilled();
    const { hash } = ledger.audit.head() ?? {};
    erase(ledger, ADA);
    const { entries } = ledger.audit.list({ limit: 100 });
    expect(entries).toMatchObject([
      {
        action: 'data.erase',
        result: 'done',
        subject: 'email',
        detail: 'submissions 2, history 1, events 0, alerts 2, attempts 2, report_rows 1, audit_persons 1, people 0',
      },
      { action: 'data.erase', result: 'started', subject: 'email', detail: null },
      { action: 'users.get', emailMasked: 'd…@example.com' },
      { action: 'users.get', emailMasked: null, emailHash: null, salt: null, personDigest: expect.any(String) },
    ]);
    expect(await checkAudit(ledger.file, hash)).toMatchObject({ kind: 'intact', entries: 4, erasedPersons: 1 });
  });

  it('moves the groups of reports to the other values, with their sums', () => {
    const ledger = openFilled();
    const groups = () => {
      const query = { unit: 'day', dimension: 'metadata.user', from: 0, until: 100, upstream: undefined } as const;
      return [...ledger.reports.rows.read(query)].map(({ key, sums }) => [key.group, sums.ended.cancelled]);
    };
    expect(groups()).toEqual([
      [{ kind: 'none' }, 0],
      [{ kind: 'value', value: EMAIL }, 1],
    ]);
    erase(ledger, ADA);
    expect(groups()).toEqual([
      [{ kind: 'none' }, 0],
      [{ kind: 'other' }, 1],
    ]);
  });

  it('is proven by a search of every row and byte', async () => {
    const ledger = openFilled();
    const before = await checkErased(ledger.file, ADA);
    expect(before.rows).toEqual([
      { table: 'alerts', column: 'summary', rows: 1 },
      { table: 'attempts', column: 'error', rows: 1 },
      { table: 'history', column: 'answer', rows: 1 },
      { table: 'mutes', column: 'reason', rows: 1 },
      { table: 'report_rows', column: 'value', rows: 1 },
      { table: 'submission_metadata', column: 'value', rows: 1 },
      { table: 'submissions', column: 'metadata', rows: 2 },
      { table: 'audit_persons', column: 'email_hash', rows: 1 },
    ]);
    expect(isErased(before)).toBe(false);
    ledger.cancel(['other'], 31);
    const other = { kind: 'email', email: 'dada@example.com' } as const;
    erase(ledger, ADA);
    erase(ledger, other);
    for (const target of [ADA, other]) {
      const after = await checkErased(ledger.file, target);
      expect(after.rows).toEqual([]);
      expect(after.files.map(({ occurrences }) => occurrences)).toEqual([0, 0]);
      expect(isErased(after)).toBe(true);
    }
  });
});

describe('an erasure by metadata', () => {
  it('removes the whole metadata of submissions with the entry, compared as text, and responses to their events', async () => {
    const ledger = openFilled();
    expect(erase(ledger, CUSTOMER).erased).toEqual({
      submissions: 1,
      history: 0,
      events: 0,
      alerts: 0,
      attempts: 1,
      report_rows: 1,
      audit_persons: 0,
      people: 0,
    });
    expect(metadataOf(ledger, 'byCustomer')).toBeNull();
    expect(metadataOf(ledger, 'other')).toEqual({ user: 'dada@example.com', customer: '88310' });
    expect(ledger.audit.list({ limit: 1 }).entries).toMatchObject([{ subject: 'metadata customer' }]);
    expect(JSON.stringify(ledger.audit.list({ limit: 100 }))).not.toContain('8831');
    expect(isErased(await checkErased(ledger.file, CUSTOMER))).toBe(true);
  });

  it.each([
    ['customer', '8831'],
    ['k'.repeat(128), 'ü'.repeat(128)],
  ])(
    'is not proven while the index of searches has the entry, in a row or in unused space (%#)',
    async (key, value) => {
      const ledger = openLedger();
      const target = { kind: 'metadata', key, value } as const;
      const raw = rawConnection(ledger.file);
      const add = raw.prepare('INSERT INTO submission_metadata (key, value, submission) VALUES (?, ?, 4711)');
      for (const others of [`${value}0`.slice(-value.length), 'other']) add.run(key, others);
      raw.pragma('wal_checkpoint(TRUNCATE)');
      expect(isErased(await checkErased(ledger.file, target))).toBe(true);
      add.run(key, value);
      raw.pragma('wal_checkpoint(TRUNCATE)');
      const { rows, files } = await checkErased(ledger.file, target);
      expect(rows).toEqual([{ table: 'submission_metadata', column: 'value', rows: 1 }]);
      expect(files.map(({ occurrences }) => occurrences)).toEqual([1, 0]);
      raw.pragma('secure_delete = OFF');
      raw.exec('DELETE FROM submission_metadata');
      raw.pragma('wal_checkpoint(TRUNCATE)');
      const deleted = await checkErased(ledger.file, target);
      expect(deleted.rows).toEqual([]);
      expect(isErased(deleted)).toBe(false);
    },
  );

  it('names what it can not remove: the filter of a webhook', async () => {
    const ledger = openFilled();
    const secret = { secret: 'whsec_y', publicKey: null };
    const webhook = { url: 'https://b.example', types: ['*'], description: '', signature: 'v1' as const };
    ledger.webhooks.create({ ...webhook, metadata: { customer: '8831' }, enabled: true }, secret, 0);
    erase(ledger, CUSTOMER);
    const { rows, files } = await checkErased(ledger.file, CUSTOMER);
    expect(rows).toEqual([{ table: 'webhooks', column: 'metadata', rows: 1 }]);
    expect(files.some(({ occurrences }) => occurrences > 0)).toBe(true);
  });
});

it.each([ADA, CUSTOMER])(
  'metadata that were replaced later are removed from the history, for $kind',
  async (target) => {
    const ledger = openFilled();
    const ids = ['byEmail', 'byCustomer'];
    const replace = (metadata: Record<string, unknown>) =>
      ledger.track(
        ids.map((id) => trackRequest(id, { retrack: true, metadata, named: ['metadata'] })),
        40,
      );
    replace({ user: 'grace' });
    expect((await checkErased(ledger.file, target)).rows).toContainEqual({
      table: 'history',
      column: 'changes',
      rows: 1,
    });
    erase(ledger, target);
    expect((await checkErased(ledger.file, target)).rows).toEqual([]);
    const changes = ids.map((id) => historyOf(ledger, id).at(-1)?.changes?.metadata);
    expect(changes).toContainEqual([null, { user: 'grace' }]);
    expect(changes).toHaveLength(2);
  },
);

it('all earlier metadata of a submission are removed with its metadata, because they may identify the person, too', () => {
  const ledger = openLedger();
  ledger.track([trackRequest('a', { metadata: { name: 'Ada Example' } })], 1);
  ledger.cancel(['a'], 2);
  const metadata = { customer: '8831' };
  ledger.track([trackRequest('a', { retrack: true, metadata, named: ['metadata'] })], 3);
  expect(erase(ledger, CUSTOMER).erased).toMatchObject({ submissions: 1, history: 1 });
  expect(historyOf(ledger, 'a').at(-1)?.changes?.metadata).toEqual([null, null]);
  expect(historyOf(ledger, 'a')).toHaveLength(3);
});

it('an erasure that is interrupted has an entry for its start only, and is repeated', () => {
  const ledger = openFilled();
  const run = ledger.erasure.run({ target: ADA, actor: ACTOR, now: () => 9 });
  run.next();
  run.return(undefined as never);
  expect(ledger.audit.list({ limit: 1 }).entries).toMatchObject([{ action: 'data.erase', result: 'started' }]);
  expect(erase(ledger, ADA).erased.submissions).toBe(2);
});

it('a submission whose metadata was erased counts as unsynced until the erasure is on the disk', async () => {
  const ledger = openLedger({ deferredSync: { onFailed: () => undefined } });
  ledger.track([{ ...trackRequest('a'), metadata: { customer: 'acme' } }], 1);
  await ledger.whenDurable();
  const actor = { name: 'an admin', credentialId: null, address: null };
  const target = { kind: 'metadata', key: 'customer', value: 'acme' } as const;
  const run = ledger.erasure.run({ target, actor, now: () => 2 });
  const found = () => ledger.submissions.get('a');
  while (found()?.metadata) run.next();
  expect(ledger.isUnsynced(found() as Submission)).toBe(true);
  await ledger.whenDurable();
  expect(ledger.isUnsynced(found() as Submission)).toBe(false);
  for (const _ of run);
});
