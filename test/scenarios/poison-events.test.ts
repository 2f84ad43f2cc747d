import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Queue } from 'bullmq';
import { expect, it, onTestFinished, vi } from 'vitest';
import { DawatchClient } from '../../src/client/index.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { EVENTS_QUEUE } from '../../src/notify/channels/queue.ts';
import { call } from '../support/app/http-calls.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { trackRequest } from '../support/ledger/ledger-file.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { openSmtpReceiver } from '../support/servers/smtp-receiver.ts';

const ADMIN = 'an-admin-token-for-tests';
const SECRET = { secret: `whsec_${'A'.repeat(43)}=`, publicKey: null };
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** Events that no version writes, by their defect. */
const POISON: readonly [name: string, fields: Record<string, string | number | null>][] = [
  ['a detail that is no JSON', { type: 'alert.raised', detail: '{"rule":' }],
  ['no detail', { type: 'alert.raised' }],
  ['a detail nested without end', { type: 'alert.raised', detail: `{"rule":${deep(50_000)}}` }],
  ['an alert without fields', { type: 'alert.resolved', detail: '{}' }],
  ['an alert with fields of other types', { type: 'alert.raised', detail: alertWith({ summary: 7 }) }],
  ['an alert whose time is none', { type: 'alert.raised', detail: alertWith({ since: 8.64e15 + 1 }) }],
  ['a rule that nobody knows', { type: 'alert.raised', detail: alertWith({ rule: 'no_such_rule' }) }],
  ['a type that nobody knows', { type: 'submission.exploded', upstream: 'default' }],
  ['a submission that is missing', { type: 'submission.finalized', upstream: 'default' }],
  ['an upstream that is missing', { type: 'upstream.down' }],
  ['a change that is missing', { type: 'submission.finalized', upstream: 'default', submission: 1 }],
  ['a time beyond all dates', { type: 'upstream.down', upstream: 'default', at: 9e15 }],
  ['an id that BullMQ takes for its own', { type: 'upstream.down', upstream: 'default', id: '4711' }],
  ['an id with a line break', { type: 'upstream.down', upstream: 'default', id: 'evt_1\r\nx-evil: 1' }],
  ['an id with a dot, which cannot be signed', { type: 'upstream.down', upstream: 'default', id: 'evt.1' }],
];

function alertWith(fields: object): string {
  return JSON.stringify({ rule: 'stuck', subject: 'default', summary: 'x', count: 1, since: 0, ...fields });
}

/** A ledger with those events before, between and after two valid ones, and a webhook for all of them. */
function writeLedger(file: string, url: string): { poisoned: number; webhookId: string } {
  const ledger = new Ledger({ file, now: 0 });
  ledger.upstream('default');
  const webhook = { url, types: ['*'], metadata: null, description: '', signature: 'v1' as const, enabled: true };
  const { id: webhookId } = ledger.webhooks.create(webhook, SECRET, 0);
  ledger.routes.setChannels(
    ['chat', 'mail', 'queue'].map((name) => ({ name, subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 })),
  );
  const raw = new Database(file);
  raw.pragma('foreign_keys = OFF');
  const event = raw.prepare(`INSERT INTO outbox (id, type, at, upstream, submission, history_seq, detail)
    VALUES (@id, @type, @at, @upstream, @submission, @history, @detail) RETURNING seq`);
  const delivery = raw.prepare(`INSERT INTO deliveries (event, destination, state, next_at, created_at)
    VALUES (?, ?, 'waiting', 0, 0)`);
  const destinations = [`webhook:${webhookId}`, 'channel:chat', 'channel:mail', 'channel:queue'];
  const empty = { at: 1, upstream: null, submission: null, history: null, detail: null };
  const poison = (round: number) => {
    for (const [index, [, fields]] of POISON.entries()) {
      const id = round > 0 && 'id' in fields ? `${fields.id}${round}` : (fields.id ?? `evt_poison_${round}_${index}`);
      const { seq } = event.get({ ...empty, ...fields, id }) as { seq: number };
      for (const destination of destinations) delivery.run(seq, destination);
    }
  };
  const finalize = (id: string, fields: object) => {
    ledger.track([trackRequest(id)], 0);
    ledger.record([{ ...observation('finalized', 1, id), ...fields }], context());
  };
  poison(0);
  finalize('well', {});
  poison(1);
  // 4,200 levels are just few enough to be written as JSON once, and too many for BullMQ, which writes it deeper in the stack.
  finalize('deep', { envelope: `{"id":"deep","state":"Finalized","data":{"block_number":7,"a":${deep(4_200)}}}` });
  poison(2);
  raw.prepare('UPDATE submissions SET metadata = ?').run(`{"a":${deep(2_030)}}`);
  raw.close();
  ledger.close();
  return { poisoned: 3 * POISON.length, webhookId };
}

it.skipIf(isRedisMissing())(
  'an event that cannot be read becomes a dead letter for every destination, and all others arrive',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dawatch-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const database = join(folder, 'ledger.db');
    const [hooks, chat, mail, redis] = [
      await openReceiver(),
      await openReceiver(),
      await openSmtpReceiver(),
      await redisForTest({}),
    ];
    const { poisoned, webhookId } = writeLedger(database, hooks.url);
    const queue = new Queue(EVENTS_QUEUE, { connection: { url: redis.url } });
    onTestFinished(() => queue.close());
    const lines: string[] = [];
    const app = await openApp({
      database,
      adminToken: ADMIN,
      redisUrl: redis.url,
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
      alerts: { check_s: 3_600 },
      channels: {
        chat: { type: 'slack', url: chat.url, gather_s: 0 },
        mail: { type: 'email', smtp_url: mail.url, from: 'a@example.com', to: ['b@example.com'], gather_s: 0 },
      },
      routes: [{ types: ['*'], channels: ['chat', 'mail'] }],
      onLog: (line) => lines.push(line),
    });
    onTestFinished(() => app.close());
    const client = new DawatchClient({ url: app.url, apiKey: API_KEY, token: ADMIN });

    const received: string[] = [];
    const gaps: number[] = [];
    const feed = client.events({ after: 0, onGap: ({ through }) => gaps.push(through) });
    const reading = (async () => {
      for await (const { data } of feed) {
        if ('submission' in data) received.push(data.submission.submission_id);
        if (received.includes('new')) return;
      }
    })();

    // Later events are delivered, too.
    await client.track(['new']);
    await client.cancel('new');
    await reading;
    expect(received).toEqual(['well', 'deep', 'new']);
    expect(gaps).toHaveLength(poisoned);

    const arrived = async () => ({
      webhook: idsIn(hooks.requests.map(({ body }) => body)),
      chat: idsIn(chat.requests.map(({ body }) => body)),
      mail: idsIn(mail.mails.map(({ text }) => String(text))),
      queue: idsIn((await queue.getJobs()).map(({ data }) => JSON.stringify(data))),
    });
    const all = ['deep', 'new', 'well'];
    await vi.waitFor(async () => expect(await arrived()).toEqual({ webhook: all, chat: all, mail: all, queue: all }), {
      timeout: 10_000,
      interval: 20,
    });
    for (const destination of [`webhook:${webhookId}`, 'channel:chat', 'channel:mail', 'channel:queue']) {
      const { deliveries } = await client.deliveries.list({ destination, state: 'dead', limit: 1_000 });
      expect(deliveries.map(({ dead_reason }) => dead_reason)).toEqual(Array(poisoned).fill('undeliverable'));
      const { event, attempts } = await client.deliveries.get(deliveries[0]?.id ?? 0);
      expect([event, attempts.map(({ error }) => error)]).toEqual([null, [expect.stringContaining('cannot be read')]]);
    }
    expect(await client.deliveries.list({ state: 'waiting' })).toMatchObject({ deliveries: [] });
    // The failure does not count against the webhook.
    expect(await client.webhooks.get(webhookId)).toMatchObject({ enabled: true, failing_since: null });
    expect(lines.join('')).not.toContain('dispatcher.failed');
    // All submissions can be read, without the data that is nested too deeply.
    const { submissions } = await client.list();
    expect(submissions.map(({ submission_id, metadata, unreadable }) => [submission_id, metadata, unreadable])).toEqual(
      [
        ['new', null, undefined],
        ['deep', null, ['metadata', 'data']],
        ['well', null, ['metadata']],
      ],
    );
    // Each is logged once, whatever number of channels and readers encountered it; so are the events of those two
    // submissions.
    const reported = lines.filter((line) => line.includes('"ledger.row_unreadable"')).map((line) => JSON.parse(line));
    const events = reported.filter(({ row }) => row === 'event').map(({ unreadable }) => unreadable);
    expect(events.filter((unreadable) => unreadable.startsWith('it'))).toHaveLength(poisoned);
    expect(events.filter((unreadable) => !unreadable.startsWith('it'))).toEqual(['metadata', 'metadata, data']);
    const { text } = await call(app.url, '/metrics');
    expect(text).toContain(`dawatch_ledger_unreadable_rows_total{kind="event"} ${poisoned + 2}\n`);
  },
);

/** Returns the submissions with delivered events. */
function idsIn(texts: readonly string[]): string[] {
  return ['deep', 'new', 'well'].filter((id) => texts.some((text) => new RegExp(`\\b${id}\\b`).test(text)));
}
