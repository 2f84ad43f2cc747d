import { onTestFinished } from 'vitest';
import {
  type Channel,
  type Outgoing,
  retryDelayMs,
  type SendResult,
} from '../../../src/notifications/channels/channel.ts';
import { type DeliveryStore, Dispatcher } from '../../../src/notifications/dispatcher.ts';
import { context, observation } from '../ledger/domain.ts';
import { type Ledger, openLedger, trackRequest } from '../ledger/ledger-file.ts';
import { createVirtualClock } from './virtual-clock.ts';

export const DISPATCHER_START_MS = 1_760_000_000_000;
export const DAY_MS = 86_400_000;

export const delivered: SendResult = { kind: 'delivered', httpStatus: 204, response: null };
export const failed = (
  more: Partial<Extract<SendResult, { kind: 'failed' }>> = {},
): SendResult => ({
  kind: 'failed',
  httpStatus: 500,
  error: 'answered with 500',
  response: null,
  ...more,
});

type Sent = { destination: string; at: number; events: string[]; ids: string[]; types: string[] };

type Fields = { metadata?: Record<string, unknown>; callbackUrl?: string };
type NewSubmission = Fields & { submissionId: string };

/** Returns this number of submissions: `s0`, `s1` and so on. */
export const numbered = (count: number, prefix = 's'): NewSubmission[] =>
  Array.from({ length: count }, (_, index) => ({ submissionId: `${prefix}${index}` }));

type World = {
  /**
   * Returns the result of a delivery to this destination; a pending promise for a receiver that
   * hangs.
   */
  receive: (
    destination: string,
    batch: readonly Outgoing[],
    signal: AbortSignal,
  ) => SendResult | Promise<SendResult>;
  maxBatch?: number;
  /** Default: that of webhooks. */
  retryDelayMs?: Channel['retryDelayMs'];
  concurrency?: number;
  store?: (store: DeliveryStore) => DeliveryStore;
  random?: () => number;
  /** Waits until all effects that require no time have happened. */
  settle?: () => Promise<void>;
};

/**
 * The real dispatcher over a real ledger, in virtual time; the test returns the results of the
 * receivers.
 */
export function openDispatcher(world: World) {
  const clock = createVirtualClock(DISPATCHER_START_MS, world.settle);
  const ledger = openLedger();
  const sent: Sent[] = [];
  const errors: unknown[] = [];
  const configured: Record<string, boolean> = {};
  const channelOf = (destination: string): Channel | undefined => {
    return configured[destination.replace('channel:', '')] === false
      ? undefined
      : channelTo(destination);
  };
  const channelTo = (destination: string): Channel => ({
    address: ledger.webhooks.url(destination.replace('webhook:', '')) ?? destination,
    maxBatch: world.maxBatch ?? 1,
    retryDelayMs: world.retryDelayMs ?? retryDelayMs,
    async send(batch, signal) {
      sent.push({
        destination,
        at: clock.now() - DISPATCHER_START_MS,
        events: batch.map(({ event }) =>
          'submission' in event ? event.submission.submissionId : event.type,
        ),
        ids: batch.map(({ event }) => event.id),
        types: batch.map(({ event }) => event.type),
      });
      return world.receive(destination, batch, signal);
    },
    async close() {},
  });
  const start = () => {
    const store: DeliveryStore = storeOf(ledger);
    const dispatcher = new Dispatcher({
      store: world.store?.(store) ?? store,
      channelOf,
      clock,
      random: world.random ?? (() => 0.5),
      concurrency: world.concurrency ?? 8,
      onAttempted: () => undefined,
      onFailed: (error) => errors.push(error),
    });
    dispatcher.start();
    return dispatcher;
  };
  const add = (submissions: readonly NewSubmission[], kind: 'finalized' | 'error') => {
    const now = clock.now();
    const far = now + 1_000 * DAY_MS;
    const limits = { deadlineAt: far, graceEndsAt: far, stuckAt: far };
    ledger.track(
      submissions.map(({ submissionId, ...fields }) =>
        trackRequest(submissionId, { ...fields, ...limits }),
      ),
      now,
    );
    ledger.record(
      submissions.map(({ submissionId }) => observation(kind, now, submissionId)),
      context({ now }),
    );
  };
  let dispatcher = start();
  onTestFinished(() => dispatcher.stop(0));
  return {
    clock,
    ledger,
    sent,
    errors,
    /** Channels by name; false: not in the settings. */
    configured,
    get dispatcher() {
      return dispatcher;
    },
    restart() {
      dispatcher = start();
    },
    webhook(
      url: string,
      fields: { types?: string[]; metadata?: Record<string, unknown> | null } = {},
    ): string {
      const { types = ['*'], metadata = null } = fields;
      const webhook = {
        url,
        types,
        metadata,
        description: '',
        enabled: true,
      };
      return ledger.webhooks.create(webhook, 'whsec_x', clock.now()).id;
    },
    /** Finalizes one submission, or observes an error of it, which adds one event. */
    finalize(
      submissionId: string,
      { kind = 'finalized' as const, ...fields }: Fields & { kind?: 'finalized' | 'error' } = {},
    ): void {
      add([{ submissionId, ...fields }], kind);
    },
    /** Finalizes submissions in one commit, in this order. */
    finalizeAll: (submissions: readonly NewSubmission[]) => add(submissions, 'finalized'),
    /** Records that the upstream is down, or up again, which adds one event. */
    turn(state: 'down' | 'up'): void {
      const at = clock.now();
      ledger.recordUpstream({
        ...{ upstream: 'default', at, event: `upstream.${state}`, reason: 'HTTP 503', lastedMs: 0 },
        record: { state, outSince: state === 'down' ? at : null },
      });
    },
    deliveries: (query: Partial<Parameters<Ledger['deliveries']['list']>[0]> = {}) =>
      ledger.deliveries.list({ limit: 1_000, ...query }).deliveries.toReversed(),
  };
}

/** The same with the real requests of a channel, which take no virtual time. */
export function openRealDispatcher(channel: Channel) {
  const world: ReturnType<typeof openDispatcher> = openDispatcher({
    maxBatch: channel.maxBatch,
    retryDelayMs: channel.retryDelayMs,
    receive: (_destination, batch, signal) => channel.send(batch, signal),
    settle: async () => {
      await world?.dispatcher.attemptsEnded();
      await new Promise((resolve) => setImmediate(resolve));
    },
  });
  return world;
}

/** As a plain object, so that a test can replace a method. */
function storeOf({ deliveries }: Ledger): DeliveryStore {
  return {
    destinations: () => deliveries.destinations(),
    due: (destination, query) => deliveries.due(destination, query),
    makeFailedDue: (destination, now) => deliveries.makeFailedDue(destination, now),
    nextDueAt: (destination, except) => deliveries.nextDueAt(destination, except),
    recordResults: (results) => deliveries.recordResults(results),
    endUnconfigured: (destination, now) => deliveries.endUnconfigured(destination, now),
    correctTimes: (now) => deliveries.correctTimes(now),
    onWaiting: (listener) => deliveries.onWaiting(listener),
  };
}
