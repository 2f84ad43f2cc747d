/** A text in a file of src that occurs once, and its replacement. */
export type Change = { file: string; from: string; to: string };
/** A deliberate bug. `also`: where the code prevents its effects a second time. `needsWorkers`: without workers it has none. */
export type Mutation = { name: string; also?: Change; needsWorkers?: boolean } & Change;

const STORE = 'ledger/submissions/submission-store.ts';
const RESULTS = 'ledger/deliveries/attempt-results.ts';
const PRUNING = 'ledger/maintenance/pruning.ts';
const BUDGET = 'pacing/request-budget.ts';
const SCHEDULER = 'pacing/scheduler.ts';
const OUTAGES = 'watch/outage-clock.ts';
const DISPATCHER = 'notify/dispatch/dispatcher.ts';
const QUEUE = 'notify/dispatch/destination-queue.ts';
const SYNC = 'ledger/file/sync/log-sync.ts';

const EVENT = 'if (change?.event) this.#outbox.addSubmissionEvent(change.event, { ...row, version }, at);';

/** The bugs that the simulation has to find, in the ledger, the scheduler, the dispatcher and the waits for the disk. */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'a change has no event',
    file: STORE,
    from: EVENT,
    to: EVENT.replace('(change?.event)', '(change?.event && row.polls < 2)'),
  },
  { name: 'a change has two events', file: STORE, from: EVENT, to: `${EVENT}\n${EVENT}` },
  { name: 'a version is left out', file: STORE, from: 'after.version += 1;', to: 'after.version += 2;' },
  {
    name: 'an update keeps the version',
    file: 'ledger/submissions/submission-changes.ts',
    from: 'const version = before.version + 1;',
    to: 'const version = before.version + (isFinal(after.status) ? 0 : 1);',
  },
  {
    name: 'observations are recorded without a transaction',
    file: 'ledger/ledger.ts',
    from: 'return this.#db.transaction(() =>\n      observations.flatMap((one) => this.#store.record(one, context, openUntil.get(one)) ?? []),\n    );',
    to: 'return observations.flatMap((one) => this.#store.record(one, context, openUntil.get(one)) ?? []);',
  },
  {
    name: 'a new webhook misses events',
    file: 'ledger/events/event-routes.ts',
    from: 'const routes = [...this.#currentWebhooks().filter(({ enabled }) => enabled), ',
    to: 'const routes = [...this.#currentWebhooks().slice(0, 1), ',
  },
  {
    name: 'new deliveries wake nobody',
    file: 'ledger/events/outbox.ts',
    from: 'this.notifyWaiting(destination);\n    return Number(lastInsertRowid);',
    to: 'return Number(lastInsertRowid);',
  },
  {
    name: 'a delivered event is sent again',
    file: RESULTS,
    from: "if (next.kind === 'delivered') this.#end(deliveryId, 'delivered', null, endedAt);",
    to: "if (next.kind === 'delivered') this.#retry(deliveryId, endedAt + 3_600_000);",
  },
  {
    name: 'a failed attempt counts as delivered',
    file: RESULTS,
    from: "else if (next.kind === 'retry') this.#retry(deliveryId, next.at);",
    to: "else if (next.kind === 'retry') this.#end(deliveryId, 'delivered', null, endedAt);",
  },
  {
    name: 'final submissions are deleted early',
    file: 'ledger/maintenance/maintenance.ts',
    from: 'clock.now() - retention.submissionsMs,',
    to: 'clock.now() - retention.submissionsMs / 2,',
  },
  {
    name: 'final submissions are never deleted',
    file: PRUNING,
    from: 'const deletable = rows.filter(({ isDeletable }) => isDeletable === 1);',
    to: 'const deletable = rows.filter(() => false);',
  },
  {
    name: 'failing submissions are forgotten at a restart',
    file: 'ledger/submissions/submission-queries.ts',
    from: 'finalized_at AS finalizedAt\n      FROM submissions WHERE upstream',
    to: "finalized_at AS finalizedAt\n      FROM submissions WHERE status <> 'failing' AND upstream",
  },
  {
    name: 'retries are forgotten at a restart',
    file: 'ledger/deliveries/deliveries.ts',
    from: "FROM deliveries WHERE state = 'waiting' GROUP BY destination\"",
    to: "FROM deliveries WHERE state = 'waiting' AND attempts = 0 GROUP BY destination\"",
  },
  {
    name: 'listeners take a commit for a rollback',
    file: 'ledger/file/ledger-database.ts',
    from: 'committed = true;',
    to: 'committed = false;',
  },
  {
    name: 'a retracked submission is not polled',
    file: 'watch/watcher.ts',
    from: "(effect !== 'accepted' && effect !== 'retracked')",
    to: "effect !== 'accepted'",
  },
  {
    name: 'the window of the budget is too short',
    file: BUDGET,
    from: '= now + 1 + this.#settings.perMs;',
    to: '= now + this.#settings.perMs - 500;',
  },
  { name: 'requests in flight are not counted', file: BUDGET, from: 'this.#inFlight++;', to: '' },
  {
    name: 'a restart forgets the spent budget',
    file: 'pacing/upstream-limits.ts',
    from: 'perMs + this.#settings.leaseMs) this.budget.exhaust(now);',
    to: 'perMs + this.#settings.leaseMs) this.budget.used(now);',
  },
  {
    name: 'a pause of the upstream is ignored',
    file: 'pacing/upstream-limits.ts',
    from: 'if (now < this.pause.until) return 0;',
    to: '',
  },
  {
    name: 'a rejected result is not polled again',
    file: SCHEDULER,
    from: 'this.#endPoll(entry, now);\n    if (this.#toDelete.has(entry)) this.#deleteEntry(entry);\n    else this.#queues.schedule(entry, dueAt);\n  }\n\n  /** Schedules a submission whose',
    to: 'this.#endPoll(entry, now);\n    if (this.#toDelete.has(entry)) this.#deleteEntry(entry);\n    else this.#queues.schedule(entry, dueAt + 86_400_000);\n  }\n\n  /** Schedules a submission whose',
  },
  {
    name: 'old submissions are polled rarely',
    file: 'pacing/policy.ts',
    from: 'return Math.min(5 * maxIntervalMs, ',
    to: 'return Math.min(50 * maxIntervalMs, ',
  },
  {
    name: 'an outage does not extend deadlines',
    file: OUTAGES,
    from: 'this.#pastMs += Math.max(0, at - this.#outSince);',
    to: '',
  },
  {
    name: 'an outage counts twice',
    file: OUTAGES,
    from: 'this.#pastMs += Math.max(0, at - this.#outSince);',
    to: 'this.#pastMs += 2 * Math.max(0, at - this.#outSince);',
  },
  {
    name: 'the circuit breaker never closes',
    file: 'pacing/circuit-breaker.ts',
    from: 'if (!this.isOpen) return null;\n        this.#state = BreakerState.closed;',
    to: 'if (!this.isOpen || this.#probes < 1_000_000) return null;\n        this.#state = BreakerState.closed;',
  },
  {
    name: 'committed results stay in flight',
    file: DISPATCHER,
    from: 'for (const { deliveryId } of results) queue.inFlight.delete(deliveryId);',
    to: '',
  },
  {
    name: 'a delivery in flight is sent again',
    file: DISPATCHER,
    from: 'limit: available * maxBatch, except: inFlight }',
    to: 'limit: available * maxBatch, except: new Set() }',
  },
  {
    name: 'waiting deliveries are not resumed',
    file: DISPATCHER,
    from: 'for (const { destination, dueAt } of store.destinations()) this.#schedule(this.#queueOf(destination), dueAt);',
    to: '',
  },
  {
    name: 'the timer of retries is not set again',
    file: DISPATCHER,
    from: 'break;\n      }\n    this.#setTimer();',
    to: 'break;\n      }',
  },
  {
    name: 'a rejected result is dropped',
    file: 'notify/dispatch/result-writer.ts',
    from: 'this.#uncommitted.push(...batch);',
    to: '',
  },
  {
    name: 'a failed attempt occupies its slot forever',
    file: QUEUE,
    from: 'slowDown: { retryAfterMs: number | null } | undefined): void {\n    this.#attempts -= 1;',
    to: 'slowDown: { retryAfterMs: number | null } | undefined): void {',
  },
  {
    name: 'a request is acknowledged before its commit is on the disk',
    file: 'http/load/durable-responses.ts',
    from: 'const isFree = request',
    to: 'const isFree = true || request',
  },
  {
    name: 'an event is sent before it is on the disk',
    file: 'notify/dispatch/attempt.ts',
    from: 'if (durable) await untilAborted(durable, stop);',
    to: '',
    also: {
      file: 'ledger/events/outbox.ts',
      from: 'return this.#waiting.onDurable(',
      to: 'return this.#waiting.onCommitted(',
    },
  },
  {
    name: 'a job is completed before its commit is on the disk',
    file: 'engines/bullmq/intake.ts',
    from: 'await this.#deps.whenDurable();',
    to: '',
    needsWorkers: true,
  },
  {
    name: 'a running sync counts for later commits',
    file: SYNC,
    from: 'return (this.#next ?? this.#running)?.promise;',
    to: 'return (this.#running ?? this.#next)?.promise;',
  },
  {
    name: 'a failed sync counts as successful',
    file: SYNC,
    from: 'if (error && this.#failure === undefined) this.fail(error);',
    to: '',
  },
];
