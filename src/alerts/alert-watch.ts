import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import {
  type Alert,
  type AlertCondition,
  type AlertFacts,
  AlertRule,
  type LiveFacts,
} from '../notifications/alert.ts';
import { parseDestination } from '../notifications/delivery.ts';
import { alertPath, durationText, linkTo, truncate } from '../notifications/message.ts';
import { ANOTHER_CHAIN } from '../submissions/chain-verdict.ts';
import type { AlertEventType } from '../submissions/event-types.ts';
import { BreakerState } from '../submissions/upstream.ts';
import type { Alerts } from './alerts-store.ts';

/**
 * A longer description of a webhook would leave no room in the title of a message for what
 * happened.
 */
const MAX_NAME_CHARS = 60;

export type AlertThresholds = {
  /**
   * Submissions of one upstream that failed with Error within ten minutes and have not recovered.
   */
  failures: number;
  /** Deliveries that have been waiting for longer than a minute. */
  backlog: number;
  /** Time for which Redis has been down. */
  redisDownMs: number;
  /** Time since the last worker left. */
  noWorkersMs: number;
};

const FAILURES_WINDOW_MS = 600_000;
/** Maintenance keeps the log far below; only a reader that does not end lets it grow so far. */
const WAL_BYTES = 256 * 1_048_576;
/**
 * The disk is low below 1 GB of free space, or a tenth of it if that is less. The alert clears at
 * this multiple.
 */
const DISK_LOW = { bytes: 1e9, share: 0.1, clears: 1.5 };
/** A persisting alert is sent again after this time: twice in a working day. */
const REMIND_AFTER_MS = 4 * 3_600_000;

/** Returns the conditions that hold now. A condition on a count clears at half its threshold. */
export function conditionsOf(facts: AlertFacts, thresholds: AlertThresholds): AlertCondition[] {
  const reached = (count: number, threshold: number, rule: AlertRule, subject: string) => {
    const isOpen = facts.open.some((alert) => alert.rule === rule && alert.subject === subject);
    return count >= (isOpen ? threshold / 2 : threshold);
  };
  return [
    ...facts.upstreams.flatMap((upstream) => ofUpstream(upstream, thresholds, reached)),
    ...ofBacklog(facts.waiting, thresholds, reached),
    ...facts.dead.map(ofDeadLetters),
    ...facts.disabled.map(ofDisabled),
    ...ofWal(facts.walBytes, reached),
    ...ofDisk(facts),
    ...ofLedger(facts),
    ...ofRedis(facts, thresholds),
  ];
}

type Reached = (count: number, threshold: number, rule: AlertRule, subject: string) => boolean;

function ofUpstream(
  {
    name,
    state,
    outSince,
    reason,
    watched,
    stuck,
    contradicted,
    contradiction,
    failing,
    failed,
  }: AlertFacts['upstreams'][number],
  { failures }: AlertThresholds,
  reached: Reached,
): AlertCondition[] {
  const condition = (holds: boolean, fields: Omit<AlertCondition, 'subject'>) =>
    holds ? [{ subject: name, ...fields }] : [];
  return [
    ...condition(state === BreakerState.down, {
      rule: AlertRule.upstreamDown,
      count: watched,
      since: outSince,
      summary: `The upstream ${name} is not responding${because(reason)}; ${waiting(watched)} for it`,
    }),
    ...condition(state === BreakerState.unauthorized, {
      rule: AlertRule.credentialsRefused,
      count: watched,
      since: outSince,
      summary: `The upstream ${name} rejects the API key${because(reason)}; ${waiting(watched)} for it`,
    }),
    ...condition(stuck > 0, {
      rule: AlertRule.stuck,
      count: stuck,
      summary: `${submissions(stuck)} of the upstream ${name} ${stuck === 1 ? 'has' : 'have'} been open for too long`,
    }),
    ...condition(contradicted > 0, {
      rule: AlertRule.contradicted,
      count: contradicted,
      summary: `The chain or the hash of the data contradicts ${submissions(contradicted)} of the upstream ${name}${contradiction?.endsWith(ANOTHER_CHAIN) ? `: ${ANOTHER_CHAIN}` : ''}`,
    }),
    ...condition(reached(failing + failed, failures, AlertRule.failures, name), {
      rule: AlertRule.failures,
      count: failing + failed,
      summary: `${submissions(failing + failed)} of the upstream ${name} failed with Error within ${durationText(FAILURES_WINDOW_MS)} without recovering: ${failing} failing, ${failed} failed`,
    }),
  ];
}

/** Far below the length of a title. */
const MAX_REASON_CHARS = 80;

function because(reason: string | null): string {
  return reason === null ? '' : ` (${truncate(reason, MAX_REASON_CHARS)})`;
}

function ofBacklog(
  waiting: number,
  { backlog }: AlertThresholds,
  reached: Reached,
): AlertCondition[] {
  const [rule, subject] = [AlertRule.backlog, 'all'];
  if (!reached(waiting, backlog, rule, subject)) return [];
  return [
    {
      rule,
      subject,
      summary: `${deliveries(waiting)} ${waiting === 1 ? 'has' : 'have'} been waiting for more than a minute`,
      count: waiting,
    },
  ];
}

function ofWal(bytes: number, reached: Reached): AlertCondition[] {
  const [rule, subject] = [AlertRule.walSize, 'ledger'];
  if (!reached(bytes, WAL_BYTES, rule, subject)) return [];
  const mib = WAL_BYTES / 1_048_576;
  const summary = `The ledger's write-ahead log has grown beyond ${mib} MiB: a reader, such as an export or a backup, has held a snapshot of the ledger for too long`;
  return [{ rule, subject, summary, count: null }];
}

function isOpen({ open }: AlertFacts, rule: AlertRule): boolean {
  return open.some((alert) => alert.rule === rule);
}

function ofDisk(facts: AlertFacts): AlertCondition[] {
  const { disk } = facts;
  const rule = AlertRule.diskLow;
  if (!disk) return [];
  const leastBytes = Math.min(DISK_LOW.bytes, DISK_LOW.share * disk.sizeBytes);
  if (disk.freeBytes >= (isOpen(facts, rule) ? DISK_LOW.clears : 1) * leastBytes) return [];
  // Without the changing number: each change of the text is written to the ledger.
  const summary = `The disk of the ledger has less than ${Math.round(leastBytes / 1e6)} MB of free space; when it is full, submissions are refused`;
  return [{ rule, subject: 'ledger', summary, count: null }];
}

function ofLedger({ unwritableSince: since }: AlertFacts): AlertCondition[] {
  return since === null ? [] : [notWritable(since)];
}

function notWritable(since: number) {
  return {
    rule: AlertRule.ledgerNotWritable,
    subject: 'ledger',
    summary:
      'The ledger cannot be written: submissions are refused, and nothing is polled or delivered',
    count: null,
    since,
  };
}

function ofRedis(
  facts: AlertFacts,
  { redisDownMs, noWorkersMs }: AlertThresholds,
): AlertCondition[] {
  const { redis, now } = facts;
  if (!redis) return [];
  const { disconnectedSince: since, workers, workersLeftAt } = redis;
  const isDown =
    since !== null && (now - since >= redisDownMs || isOpen(facts, AlertRule.redisDown));
  const isWithout =
    isOpen(facts, AlertRule.noWorkers) ||
    (since === null && workersLeftAt !== null && now - workersLeftAt >= noWorkersMs);
  return [
    ...(isDown
      ? [
          {
            rule: AlertRule.redisDown,
            subject: 'redis',
            summary:
              'Redis does not respond: this server polls alone; queued submissions and events for queues wait',
            count: null,
            since,
          },
        ]
      : []),
    ...(isWithout && workers.length === 0
      ? [
          {
            rule: AlertRule.noWorkers,
            subject: 'workers',
            summary: 'All workers have left: this server polls alone',
            count: null,
            since: workersLeftAt,
          },
        ]
      : []),
  ];
}

function ofDeadLetters({
  receiver,
  description,
  count,
}: AlertFacts['dead'][number]): AlertCondition {
  const destination = parseDestination(receiver);
  const to =
    destination.kind === 'webhook'
      ? webhookName(destination.webhookId, description)
      : `the ${destination.kind} ${destination.kind === 'channel' ? destination.name : destination.origin}`;
  const summary = `${deliveries(count)} to ${to} became ${count === 1 ? 'a dead letter' : 'dead letters'} and can be replayed`;
  return { rule: AlertRule.deadLetters, subject: receiver, summary, count };
}

function ofDisabled({
  id,
  description,
  reason,
  since,
}: AlertFacts['disabled'][number]): AlertCondition {
  const cause =
    reason === 'gone'
      ? 'its receiver responded with 410 Gone'
      : 'all its deliveries failed for too long';
  const name = webhookName(id, description);
  const summary = `${name[0]?.toUpperCase()}${name.slice(1)} was disabled: ${cause}`;
  return { rule: AlertRule.webhookDisabled, subject: `webhook:${id}`, summary, count: null, since };
}

function webhookName(id: string, description: string | null): string {
  const name = truncate(description?.trim() ?? '', MAX_NAME_CHARS);
  return `the webhook ${name || id}`;
}

function deliveries(count: number): string {
  return count === 1 ? '1 delivery' : `${count} deliveries`;
}

function waiting(count: number): string {
  if (count === 0) return 'no submission is waiting';
  return `${submissions(count)} ${count === 1 ? 'is waiting' : 'are waiting'}`;
}

function submissions(count: number): string {
  return count === 1 ? '1 submission' : `${count} submissions`;
}

/** Dead letters older than this raise no alert. */
const DEAD_WINDOW_MS = 86_400_000;
/**
 * Deliveries that wait for less do not count as a backlog: thousands of events at once take some
 * time.
 */
const WAITING_MS = 60_000;

type AlertWatchDeps = {
  store: Alerts;
  clock: Clock;
  /** Names of the configured upstreams. */
  upstreams: readonly string[];
  thresholds: AlertThresholds;
  checkMs: number;
  redis: () => LiveFacts['redis'];
  isLedgerWritable: () => boolean;
  /** The setting `server.public_url`. */
  publicUrl: string | undefined;
  onReported: (reported: { type: AlertEventType; alert: Alert }) => void;
  onFailed: (error: unknown) => void;
};

/**
 * Evaluates the alert rules every `checkMs`. Open alerts are stored in the ledger, so a restart
 * does not repeat them. That the ledger cannot be written is an alert in memory, which is recorded
 * and sent by the first check that can write.
 */
export class AlertWatch {
  readonly #deps: AlertWatchDeps;
  #cancel: (() => void) | undefined;
  /** Since when the ledger cannot be written, and no check has recorded that. */
  #unwritableSince: number | null = null;

  constructor(deps: AlertWatchDeps) {
    this.#deps = deps;
  }

  /** The alert that is not in the ledger; undefined: there is none. */
  get unrecorded(): (AlertCondition & { since: number }) | undefined {
    return this.#unwritableSince === null ? undefined : notWritable(this.#unwritableSince);
  }

  start(): void {
    const { clock, checkMs } = this.#deps;
    this.#cancel = clock.after(checkMs, () => {
      this.#check();
      this.start();
    });
  }

  stop(): void {
    this.#cancel?.();
  }

  #check(): void {
    const { store, clock, upstreams, thresholds, onReported, onFailed } = this.#deps;
    const now = clock.now();
    const { publicUrl } = this.#deps;
    if (!this.#deps.isLedgerWritable()) {
      this.#unwritableSince ??= now;
      return;
    }
    try {
      const stored = store.facts({
        upstreams,
        now,
        failuresSince: now - FAILURES_WINDOW_MS,
        deadSince: now - DEAD_WINDOW_MS,
        waitingBefore: now - WAITING_MS,
      });
      const redis = this.#deps.redis();
      const facts = { ...stored, now, redis, unwritableSince: this.#unwritableSince };
      const linkOf = (condition: AlertCondition) =>
        publicUrl && linkTo(publicUrl, alertPath(condition));
      for (const reported of store.reconcile(conditionsOf(facts, thresholds), {
        now,
        remindAfterMs: REMIND_AFTER_MS,
        linkOf,
      }))
        onReported(reported);
      this.#unwritableSince = null;
    } catch (error) {
      if (error instanceof LedgerUnavailableError) this.#unwritableSince ??= now;
      onFailed(error);
    }
  }
}
