import { CALLBACKS, type DisabledReason, parseDestination } from '../notifications/delivery.ts';
import type { AlertRule } from '../notifications/event-body.ts';
import { durationText, encoded, truncate, webhookPath } from '../notifications/message.ts';
import type { Receiver } from '../notifications/receivers-store.ts';
import { BreakerState } from '../submissions/upstream.ts';

/** What alert rules depend on and the ledger does not contain. Times are epoch milliseconds. */
export type LiveFacts = {
  now: number;
  /** Since when the ledger could not be written; null: it can. */
  unwritableSince: number | null;
  redis:
    | {
        disconnectedSince: number | null;
        workers: readonly unknown[];
        /** When the last worker left; null: there is one, or there has been none. */
        workersLeftAt: number | null;
      }
    | undefined;
  /** Nodes of chains that have a problem, and why they are not used. */
  unusedNodes: readonly { upstream: string; host: string; problem: string; since: number }[];
  /** Upstreams, with their long pauses. */
  pauses: readonly { upstream: string; reason: string | null; pause: { since: number } | null }[];
};

export type AlertFacts = LiveFacts & {
  upstreams: {
    name: string;
    state: BreakerState;
    outSince: number | null;
    /** Of its outage; null: there is none. */
    reason: string | null;
    /** Watched submissions; 0 unless the upstream is down. */
    watched: number;
    stuck: number;
    /** See oddStateOf; null unless some are stuck. */
    oddState: string | null;
    /** Before their deadlines, that the chain, or the hash of their data, contradicts. */
    contradicted: number;
    /** With an Error in the last FAILURES_WINDOW_MS, and failing or failed now. */
    failing: number;
    failed: number;
  }[];
  receivers: Receiver[];
  /** Dead letters of the last day, except those of alerts and of disabled destinations. */
  dead: { receiver: string; description: string | null; count: number }[];
  disabled: { id: string; description: string | null; reason: DisabledReason; since: number }[];
  walBytes: number;
  /** The file system of the ledger; undefined: unknown. */
  disk: { freeBytes: number; sizeBytes: number } | undefined;
  /** Alerts that were raised and are not resolved. */
  open: { rule: AlertRule; subject: string }[];
};

export type AlertThresholds = {
  /** Submissions of one upstream that failed with Error and have not recovered. */
  failures: number;
  backlog: number;
  redisDownMs: number;
  noWorkersMs: number;
  chainNodeMs: number;
  pausedMs: number;
};

/** A condition that holds now. There is at most one alert for each rule and subject. */
export type AlertCondition = {
  rule: AlertRule;
  /** An upstream, a destination, "ledger", "redis" or "workers". */
  subject: string;
  summary: string;
  count: number | null;
  /** Since when it has held; absent: since it was found. */
  since?: number | null;
};

type Found = Omit<AlertCondition, 'rule'>;
type Context = {
  thresholds: AlertThresholds;
  isOpen: (subject: string) => boolean;
  /** Whether a count reaches its threshold, or half of it while the alert is open. */
  reaches: (count: number, threshold: number, subject: string) => boolean;
};

type Rule = {
  find(facts: AlertFacts, context: Context): Found[];
  over(subject: string): string;
  /** The dashboard page about the alert; default: that of the alerts. */
  path?(subject: string): string;
};

export const FAILURES_WINDOW_MS = 600_000;
/** Three attempts at a webhook. */
const FAILING_MS = 600_000;
/** Maintenance keeps the log far below; only a reader that does not end lets it grow so far. */
const WAL_BYTES = 256 * 1_048_576;
/** The disk is low below 1 GB, or a tenth of it if that is less; the alert ends at `clears`. */
const DISK_LOW = { bytes: 1e9, share: 0.1, clears: 1.5 };
const PACING_PATH = '#/pacing';

const RULES: Record<AlertRule, Rule> = {
  upstream_down: {
    find: ({ upstreams }) =>
      upstreams
        .filter(({ state }) => state === BreakerState.down)
        .map((one) => outage(one, 'is not responding')),
    over: (subject) => `The upstream ${subject} is responding again`,
    path: () => PACING_PATH,
  },
  credentials_refused: {
    find: ({ upstreams }) =>
      upstreams
        .filter(({ state }) => state === BreakerState.unauthorized)
        .map((one) => outage(one, 'rejects the API key')),
    over: (subject) => `The upstream ${subject} no longer rejects the API key`,
    path: () => PACING_PATH,
  },
  upstream_paused: {
    find: ({ pauses, now }, { thresholds, isOpen }) =>
      pauses.flatMap(({ upstream, reason, pause }) => {
        if (!pause) return [];
        return when(now - pause.since >= thresholds.pausedMs || isOpen(upstream), {
          subject: upstream,
          summary: `The upstream ${upstream} asks for pauses only (${truncate(reason ?? 'Retry-After', MAX_REASON_CHARS)})`,
          count: null,
          since: pause.since,
        });
      }),
    over: (subject) => `The upstream ${subject} accepts requests again`,
    path: () => PACING_PATH,
  },
  stuck: {
    find: ({ upstreams }) =>
      upstreams
        .filter(({ stuck }) => stuck > 0)
        .map(({ name, stuck, oddState }) => ({
          subject: name,
          count: stuck,
          summary: `${submissions(stuck)} of the upstream ${name} ${stuck === 1 ? 'has' : 'have'} been open for too long${oddState === null ? '' : `; ${oddState}`}`,
        })),
    over: (subject) => `No submission of the upstream ${subject} is stuck any longer`,
    path: (subject) =>
      `#/submissions?status=tracking,pending,failing&upstream=${encoded(subject)}&stuck=true`,
  },
  contradicted: {
    find: ({ upstreams }) =>
      upstreams
        .filter(({ contradicted }) => contradicted > 0)
        .map(({ name, contradicted }) => ({
          subject: name,
          count: contradicted,
          summary: `The chain or the hash of the data contradicts ${submissions(contradicted)} of the upstream ${name}`,
        })),
    over: (subject) =>
      `No submission of the upstream ${subject} is contradicted any longer, or they are no longer polled`,
    path: (subject) => `#/submissions?chain=contradicted&upstream=${encoded(subject)}`,
  },
  failures: {
    find: ({ upstreams }, { thresholds, reaches }) =>
      upstreams
        .filter(({ name, failing, failed }) => reaches(failing + failed, thresholds.failures, name))
        .map(({ name, failing, failed }) => ({
          subject: name,
          count: failing + failed,
          summary: `${submissions(failing + failed)} of the upstream ${name} failed with Error within ${durationText(FAILURES_WINDOW_MS)} without recovering: ${failing} failing, ${failed} failed`,
        })),
    over: (subject) =>
      `Fewer submissions of the upstream ${subject} are failing: below half the threshold`,
    path: (subject) => `#/submissions?status=failing,failed&upstream=${encoded(subject)}`,
  },
  webhook_failing: { ...receiverFailing('webhook'), path: webhookPathOf },
  channel_failing: receiverFailing('channel'),
  backlog: {
    find: ({ receivers, now }, { thresholds, reaches }) =>
      receivers
        .filter(({ destination, late, failingSince }) => {
          const isReported = failingSince !== null && now - failingSince >= FAILING_MS;
          return !isReported && reaches(late, thresholds.backlog, destination);
        })
        .map(({ destination, description, late }) => ({
          subject: destination,
          count: late,
          summary: `${deliveries(late)} to ${receiverName(destination, description)} ${late === 1 ? 'has' : 'have'} been waiting for more than a minute`,
        })),
    over: (subject) =>
      `The backlog of ${subject} is below half the threshold, or all attempts fail, or it was disabled or removed`,
    path: (subject) => `#/deliveries?destination=${encoded(subject)}&state=waiting`,
  },
  dead_letters: {
    find: ({ dead }) =>
      dead.map(({ receiver, description, count }) => ({
        subject: receiver,
        count,
        summary: `${deliveries(count)} to ${receiverName(receiver, description)} became ${count === 1 ? 'a dead letter' : 'dead letters'} and can be replayed`,
      })),
    over: (subject) =>
      `The dead letters of ${subject} were replayed or are older than a day, or the destination was disabled or deleted`,
    path: () => '#/deliveries?state=dead',
  },
  webhook_disabled: {
    find: ({ disabled }) =>
      disabled.map(({ id, description, reason, since }) => {
        const cause =
          reason === 'gone'
            ? 'its receiver responded with 410 Gone'
            : 'all its deliveries failed for too long';
        const summary = `The ${webhookName(id, description)} was disabled: ${cause}`;
        return { subject: `webhook:${id}`, summary, count: null, since };
      }),
    over: (subject) =>
      `The ${subject.replace(':', ' ')} was enabled again, deleted, or disabled by an operator`,
    path: webhookPathOf,
  },
  wal_size: {
    find: ({ walBytes }, { reaches }) =>
      when(reaches(walBytes, WAL_BYTES, 'ledger'), {
        subject: 'ledger',
        summary: `The ledger's write-ahead log has grown beyond ${WAL_BYTES / 1_048_576} MiB: a reader, such as an export or a backup, has held a snapshot of the ledger for too long`,
        count: null,
      }),
    over: () => "The ledger's write-ahead log is below half the threshold",
  },
  disk_low: {
    find({ disk }, { isOpen }) {
      if (!disk) return [];
      const leastBytes = Math.min(DISK_LOW.bytes, DISK_LOW.share * disk.sizeBytes);
      const subject = 'ledger';
      return when(disk.freeBytes < (isOpen(subject) ? DISK_LOW.clears : 1) * leastBytes, {
        subject,
        // Without the changing number: each change of the text is written to the ledger.
        summary: `The disk of the ledger has less than ${Math.round(leastBytes / 1e6)} MB of free space; when it is full, submissions are refused`,
        count: null,
      });
    },
    over: () => 'The disk of the ledger has enough free space again',
  },
  ledger_not_writable: {
    find: ({ unwritableSince }) => (unwritableSince === null ? [] : [notWritable(unwritableSince)]),
    over: () => 'The ledger can be written again',
  },
  redis_down: {
    find({ redis, now }, { thresholds, isOpen }) {
      const since = redis?.disconnectedSince ?? null;
      if (since === null) return [];
      return when(now - since >= thresholds.redisDownMs || isOpen('redis'), {
        subject: 'redis',
        summary:
          'Redis does not work: this server polls alone; queued submissions and events for queues wait',
        count: null,
        since,
      });
    },
    over: () => 'Redis works again',
  },
  no_workers: {
    find({ redis, now }, { thresholds, isOpen }) {
      if (!redis || redis.workers.length > 0) return [];
      const { disconnectedSince, workersLeftAt: since } = redis;
      const haveLeft =
        disconnectedSince === null && since !== null && now - since >= thresholds.noWorkersMs;
      return when(haveLeft || isOpen('workers'), {
        subject: 'workers',
        summary: 'All workers have left: this server polls alone',
        count: null,
        since,
      });
    },
    over: () => 'A worker has joined, or Redis is no longer configured',
  },
  chain_node: {
    find({ upstreams, unusedNodes, now }, { thresholds, isOpen }) {
      return upstreams.flatMap(({ name }) => {
        const nodes = unusedNodes.filter(({ upstream, since }) => {
          return upstream === name && (now - since >= thresholds.chainNodeMs || isOpen(name));
        });
        const reasons = nodes.map(
          ({ host, problem }) => `${host}: ${truncate(problem, MAX_REASON_CHARS)}`,
        );
        return when(nodes.length > 0, {
          subject: name,
          summary: `${nodes.length === 1 ? 'A node' : `${nodes.length} nodes`} of the chain of the upstream ${name} cannot be used (${reasons.join('; ')})`,
          count: nodes.length,
          since: Math.min(...nodes.map(({ since }) => since)),
        });
      });
    },
    over: (subject) => `All nodes of the chain of the upstream ${subject} are used`,
    path: () => PACING_PATH,
  },
};

/** Returns the conditions that hold now. A condition on a count clears at half its threshold. */
export function conditionsOf(facts: AlertFacts, thresholds: AlertThresholds): AlertCondition[] {
  return (Object.keys(RULES) as AlertRule[]).flatMap((rule) => {
    const isOpen = (subject: string) =>
      facts.open.some((alert) => alert.rule === rule && alert.subject === subject);
    const reaches = (count: number, threshold: number, subject: string) =>
      count >= (isOpen(subject) ? threshold / 2 : threshold);
    return RULES[rule]
      .find(facts, { thresholds, isOpen, reaches })
      .map((found) => ({ rule, ...found }));
  });
}

type AlertKey = { rule: AlertRule; subject: string };

export function resolvedSummary({ rule, subject }: AlertKey): string {
  return RULES[rule].over(subject);
}

export function alertPath({ rule, subject }: AlertKey): string {
  return RULES[rule].path?.(subject) ?? '#/alerts';
}

export function notWritable(since: number) {
  return {
    rule: 'ledger_not_writable' as const,
    subject: 'ledger',
    summary:
      'The ledger cannot be written: submissions are refused, and nothing is polled or delivered',
    count: null,
    since,
  };
}

/** A receiver for which every attempt has failed for ten minutes. */
function receiverFailing(kind: 'webhook' | 'channel'): Rule {
  return {
    find: ({ receivers, now }, { isOpen }) =>
      receivers.flatMap(({ destination, description, failingSince, error, waiting }) => {
        if (failingSince === null || parseDestination(destination).kind !== kind) return [];
        return when(now - failingSince >= FAILING_MS || isOpen(destination), {
          subject: destination,
          count: waiting,
          since: failingSince,
          summary: `All attempts at ${receiverName(destination, description)} fail (${truncate(error ?? '', MAX_REASON_CHARS)}); ${deliveries(waiting)} ${waiting === 1 ? 'waits' : 'wait'}`,
        });
      }),
    over: (subject) =>
      `Deliveries to ${subject} succeed again, or it was changed, disabled or removed`,
    path: (subject) => `#/deliveries?destination=${encoded(subject)}`,
  };
}

function when(holds: boolean, found: Found): Found[] {
  return holds ? [found] : [];
}

const MAX_REASON_CHARS = 80;

function outage(
  { name, outSince, reason, watched }: AlertFacts['upstreams'][number],
  what: string,
): Found {
  const because = reason === null ? '' : ` (${truncate(reason, MAX_REASON_CHARS)})`;
  const waiting =
    watched === 0
      ? 'no submission is waiting'
      : `${submissions(watched)} ${watched === 1 ? 'is' : 'are'} waiting`;
  return {
    subject: name,
    count: watched,
    since: outSince,
    summary: `The upstream ${name} ${what}${because}; ${waiting} for it`,
  };
}

function webhookPathOf(subject: string): string {
  return webhookPath(subject.replace(/^webhook:/, ''));
}

function receiverName(receiver: string, description: string | null): string {
  const destination = parseDestination(receiver);
  if (destination.kind === 'webhook')
    return `the ${webhookName(destination.webhookId, receiver === CALLBACKS ? null : description)}`;
  const name = destination.kind === 'channel' ? destination.name : destination.origin;
  return `the ${destination.kind} ${name}`;
}

/** A longer description would leave no room in the title for what happened. */
const MAX_NAME_CHARS = 60;

function webhookName(id: string, description: string | null): string {
  return `webhook ${truncate(description?.trim() ?? '', MAX_NAME_CHARS) || id}`;
}

function deliveries(count: number): string {
  return count === 1 ? '1 delivery' : `${count.toLocaleString('en')} deliveries`;
}

function submissions(count: number): string {
  return count === 1 ? '1 submission' : `${count.toLocaleString('en')} submissions`;
}
