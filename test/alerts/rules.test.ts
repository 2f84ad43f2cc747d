import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type AlertFacts,
  alertPath,
  conditionsOf,
  resolvedSummary,
} from '../../src/alerts/rules.ts';
import { ALERT_RULES, type AlertRule } from '../../src/notifications/event-body.ts';

const QUIET: AlertFacts = {
  upstreams: [],
  receivers: [],
  dead: [],
  disabled: [],
  walBytes: 0,
  disk: undefined,
  open: [],
  now: 0,
  unwritableSince: null,
  redis: undefined,
  unusedNodes: [],
  pauses: [],
};
const LIMITS = {
  ...{ failures: 3, backlog: 10 },
  ...{ redisDownMs: 10_000, noWorkersMs: 30_000, chainNodeMs: 60_000, pausedMs: 300_000 },
};
const upstream = (fields: Partial<AlertFacts['upstreams'][number]>): Partial<AlertFacts> => ({
  upstreams: [
    {
      name: 'default',
      state: 'up',
      outSince: null,
      reason: null,
      watched: 0,
      stuck: 0,
      oddState: null,
      contradicted: 0,
      failing: 0,
      failed: 0,
      ...fields,
    },
  ],
});

const receiver = (
  fields: Partial<AlertFacts['receivers'][number]> = {},
  now = 600_000,
): Partial<AlertFacts> => ({
  now,
  receivers: [
    {
      ...{ destination: 'webhook:wh_1', description: 'billing' },
      ...{ succeededAt: null, failedAt: null, error: null, failingSince: null },
      ...{ waiting: 0, late: 0, oldestWaitingAt: null, ...fields },
    },
  ],
});
const fails = { failingSince: 0, error: 'responded with 500', waiting: 14_000, late: 13_990 };

const redis = (fields: Partial<AlertFacts['redis']>): Partial<AlertFacts> => ({
  now: 60_000,
  redis: { disconnectedSince: null, workers: [], workersLeftAt: null, ...fields },
});

const unused = (now: number, ...hosts: string[]): Partial<AlertFacts> => ({
  ...{ ...upstream({}), now },
  unusedNodes: hosts.map((host) => {
    return { upstream: 'default', host, problem: 'the connection was refused', since: 0 };
  }),
});

const paused = (now: number): Partial<AlertFacts> => ({
  now,
  pauses: [{ upstream: 'default', reason: 'HTTP 429', pause: { since: 0 } }],
});

/** The texts for operators: of an active condition, for one and for many, and of its end. */
const TEXTS: Record<
  AlertRule,
  { holds: [facts: Partial<AlertFacts>, sentence: string][]; over: string }
> = {
  contradicted: {
    holds: [
      [
        upstream({ contradicted: 1 }),
        'The chain or the hash of the data contradicts 1 submission of the upstream default',
      ],
      [
        upstream({ contradicted: 9 }),
        'The chain or the hash of the data contradicts 9 submissions of the upstream default',
      ],
    ],
    over: 'No submission of the upstream default is contradicted any longer, or they are no longer polled',
  },
  upstream_down: {
    holds: [
      [
        upstream({ state: 'down', watched: 0 }),
        'The upstream default is not responding; no submission is waiting for it',
      ],
      [
        upstream({ state: 'down', watched: 1, reason: 'HTTP 503 Service Unavailable' }),
        'The upstream default is not responding (HTTP 503 Service Unavailable); 1 submission is waiting for it',
      ],
    ],
    over: 'The upstream default is responding again',
  },
  credentials_refused: {
    holds: [
      [
        upstream({ state: 'unauthorized', watched: 7 }),
        'The upstream default rejects the API key; 7 submissions are waiting for it',
      ],
    ],
    over: 'The upstream default no longer rejects the API key',
  },
  stuck: {
    holds: [
      [upstream({ stuck: 1 }), '1 submission of the upstream default has been open for too long'],
      [
        upstream({ stuck: 3, oddState: 'it reports the state SEALED, 3 ids have a block' }),
        '3 submissions of the upstream default have been open for too long; it reports the state SEALED, 3 ids have a block',
      ],
      [
        upstream({ stuck: 12 }),
        '12 submissions of the upstream default have been open for too long',
      ],
    ],
    over: 'No submission of the upstream default is stuck any longer',
  },
  failures: {
    holds: [
      [
        upstream({ failing: 9, failed: 3 }),
        '12 submissions of the upstream default failed with Error within 10 min without recovering: 9 failing, 3 failed',
      ],
    ],
    over: 'Fewer submissions of the upstream default are failing: below half the threshold',
  },
  backlog: {
    holds: [
      [
        receiver({ late: 1 }),
        '1 delivery to the webhook billing has been waiting for more than a minute',
      ],
      [
        receiver({ late: 900 }),
        '900 deliveries to the webhook billing have been waiting for more than a minute',
      ],
    ],
    over: 'The backlog of webhook:wh_1 is below half the threshold, or all attempts fail, or it was disabled or removed',
  },
  webhook_failing: {
    holds: [
      [
        receiver({ ...fails, waiting: 1 }),
        'All attempts at the webhook billing fail (responded with 500); 1 delivery waits',
      ],
      [
        receiver(fails),
        'All attempts at the webhook billing fail (responded with 500); 14,000 deliveries wait',
      ],
    ],
    over: 'Deliveries to webhook:wh_1 succeed again, or it was changed, disabled or removed',
  },
  channel_failing: {
    holds: [
      [
        receiver({ ...fails, destination: 'channel:ops', description: null }),
        'All attempts at the channel ops fail (responded with 500); 14,000 deliveries wait',
      ],
    ],
    over: 'Deliveries to channel:ops succeed again, or it was changed, disabled or removed',
  },
  dead_letters: {
    holds: [
      [
        { dead: [{ receiver: 'webhook:wh_1', description: '', count: 1 }] },
        '1 delivery to the webhook wh_1 became a dead letter and can be replayed',
      ],
      [
        { dead: [{ receiver: 'webhook:wh_1', description: 'billing', count: 4 }] },
        '4 deliveries to the webhook billing became dead letters and can be replayed',
      ],
    ],
    over: 'The dead letters of webhook:wh_1 were replayed or are older than a day, or the destination was disabled or deleted',
  },
  webhook_disabled: {
    holds: [
      [
        { disabled: [{ id: 'wh_1', description: null, reason: 'gone', since: 0 }] },
        'The webhook wh_1 was disabled: its receiver responded with 410 Gone',
      ],
      [
        { disabled: [{ id: 'wh_1', description: 'billing', reason: 'failing', since: 0 }] },
        'The webhook billing was disabled: all its deliveries failed for too long',
      ],
    ],
    over: 'The webhook wh_1 was enabled again, deleted, or disabled by an operator',
  },
  wal_size: {
    holds: [
      [
        { walBytes: 2 ** 30 },
        "The ledger's write-ahead log has grown beyond 256 MiB: a reader, such as an export or a backup, has held a snapshot of the ledger for too long",
      ],
    ],
    over: "The ledger's write-ahead log is below half the threshold",
  },
  disk_low: {
    holds: [
      [
        { disk: { freeBytes: 1e9 - 1, sizeBytes: 1e12 } },
        'The disk of the ledger has less than 1000 MB of free space; when it is full, submissions are refused',
      ],
      [
        { disk: { freeBytes: 0, sizeBytes: 1e9 } },
        'The disk of the ledger has less than 100 MB of free space; when it is full, submissions are refused',
      ],
    ],
    over: 'The disk of the ledger has enough free space again',
  },
  ledger_not_writable: {
    holds: [
      [
        { unwritableSince: 0 },
        'The ledger cannot be written: submissions are refused, and nothing is polled or delivered',
      ],
    ],
    over: 'The ledger can be written again',
  },
  redis_down: {
    holds: [
      [
        redis({ disconnectedSince: 0 }),
        'Redis does not work: this server polls alone; queued submissions and events for queues wait',
      ],
    ],
    over: 'Redis works again',
  },
  no_workers: {
    holds: [[redis({ workersLeftAt: 0 }), 'All workers have left: this server polls alone']],
    over: 'A worker has joined, or Redis is no longer configured',
  },
  upstream_paused: {
    holds: [[paused(300_000), 'The upstream default asks for pauses only (HTTP 429)']],
    over: 'The upstream default accepts requests again',
  },
  chain_node: {
    holds: [
      [
        unused(60_000, 'a'),
        'A node of the chain of the upstream default cannot be used (a: the connection was refused)',
      ],
      [
        unused(60_000, 'a', 'b'),
        '2 nodes of the chain of the upstream default cannot be used (a: the connection was refused; b: the connection was refused)',
      ],
    ],
    over: 'All nodes of the chain of the upstream default are used',
  },
};

const cases = ALERT_RULES.flatMap((rule) =>
  TEXTS[rule].holds.map(([facts, sentence]) => [rule, sentence, facts] as const),
);

it.each(cases)('%s has the text "%s"', (rule, sentence, facts) => {
  const conditions = conditionsOf({ ...QUIET, ...facts }, { ...LIMITS, failures: 1, backlog: 1 });
  expect(conditions).toMatchObject([{ rule, summary: sentence }]);
  expect(conditions.map(resolvedSummary)).toEqual([TEXTS[rule].over]);
});

it.each(['docs/notifications.md', 'docs/troubleshooting.md'])('%s explains every rule', (file) => {
  const text = readFileSync(file, 'utf8');
  expect(ALERT_RULES.filter((rule) => !text.includes(`\`${rule}\``))).toEqual([]);
});

it.each(ALERT_RULES)('an alert of the rule %s leads to its page, not to the first one', (rule) => {
  expect(alertPath({ rule, subject: 'webhook:wh_1' })).toMatch(
    /^#\/(?:pacing|alerts|(?:submissions|deliveries|webhooks)[/?]\S+)$/,
  );
});

const open = (rule: AlertRule, subject: string): Partial<AlertFacts> => ({
  open: [{ rule, subject }],
});

describe('the rules', () => {
  it.each<[string, Partial<AlertFacts>, string[]]>([
    ['nothing', upstream({ watched: 9 }), []],
    ['few failures', upstream({ failed: 2 }), []],
    ['many failures', upstream({ failing: 1, failed: 2 }), ['failures default 3']],
    [
      'fewer failures than the threshold, but more than half of it',
      { ...upstream({ failed: 2 }), ...open('failures', 'default') },
      ['failures default 2'],
    ],
    ['few waiting deliveries', receiver({ late: 9 }), []],
    ['many waiting deliveries', receiver({ late: 10 }), ['backlog webhook:wh_1 10']],
    ['a receiver that has failed for less than ten minutes', receiver({ failingSince: 1 }), []],
    [
      'for ten minutes, which explains its backlog',
      receiver(fails),
      ['webhook_failing webhook:wh_1 14000'],
    ],
    [
      'again after a pause of days, without a success',
      { ...receiver({ failingSince: 599_999 }), ...open('webhook_failing', 'webhook:wh_1') },
      ['webhook_failing webhook:wh_1 0'],
    ],
    ['a large write-ahead log', { walBytes: 256 * 2 ** 20 }, ['wal_size ledger null']],
    [
      'a log below the threshold, but above half of it',
      { walBytes: 128 * 2 ** 20, ...open('wal_size', 'ledger') },
      ['wal_size ledger null'],
    ],
    [
      'a log below half of the threshold',
      { walBytes: 128 * 2 ** 20 - 1, ...open('wal_size', 'ledger') },
      [],
    ],
    ['a large disk with 1 GB of free space', { disk: { freeBytes: 1e9, sizeBytes: 1e12 } }, []],
    ['a small disk of which a tenth is free', { disk: { freeBytes: 1e6, sizeBytes: 1e7 } }, []],
    [
      'of which less is free',
      { disk: { freeBytes: 999_999, sizeBytes: 1e7 } },
      ['disk_low ledger null'],
    ],
    [
      'free space above the threshold, but below 1.5 times as much',
      {
        disk: { freeBytes: 1.4e9, sizeBytes: 1e12 },
        ...open('disk_low', 'ledger'),
      },
      ['disk_low ledger null'],
    ],
    [
      'free space above 1.5 times the threshold',
      {
        disk: { freeBytes: 1.5e9, sizeBytes: 1e12 },
        ...open('disk_low', 'ledger'),
      },
      [],
    ],
    ['Redis that restarts', { ...redis({ disconnectedSince: 0 }), now: 9_999 }, []],
    [
      'Redis that is down',
      { ...redis({ disconnectedSince: 0 }), now: 10_000 },
      ['redis_down redis null'],
    ],
    ['Redis without workers from the start', { ...redis({}), now: 60_000 }, []],
    ['workers that restart', { ...redis({ workersLeftAt: 0 }), now: 29_999 }, []],
    [
      'workers that left',
      { ...redis({ workersLeftAt: 0 }), now: 30_000 },
      ['no_workers workers null'],
    ],
    [
      'workers that had left before a restart of the server',
      { ...redis({}), ...open('no_workers', 'workers') },
      ['no_workers workers null'],
    ],
    [
      'a worker that came back',
      { ...redis({ workers: ['w'] }), ...open('no_workers', 'workers') },
      [],
    ],
    ['an upstream that asks for pauses', paused(299_999), []],
    [
      'also after a restart, from which on the pause is measured',
      { ...paused(31_000), ...open('upstream_paused', 'default') },
      ['upstream_paused default null'],
    ],
    ['a node of the chain that reconnects', unused(59_999, 'a'), []],
  ])('%s', (_name, facts, expected) => {
    const conditions = conditionsOf({ ...QUIET, ...facts }, LIMITS);
    expect(conditions.map(({ rule, subject, count }) => `${rule} ${subject} ${count}`)).toEqual(
      expected,
    );
  });

  it('shorten a long description of a webhook, and omit an empty one', () => {
    const summaryOf = (description: string) => {
      const disabled = [{ id: 'wh_1', description, reason: 'gone' as const, since: 0 }];
      return conditionsOf({ ...QUIET, disabled }, LIMITS)[0]?.summary;
    };
    expect(summaryOf('x'.repeat(200))).toMatch(/^The webhook x{10,59}… was disabled/);
    expect(summaryOf('  ')).toMatch(/^The webhook wh_1 was disabled/);
  });
});
