import type { Clock } from '../lib/clock.ts';
import type { TraceDelivery } from '../notifications/attempt.ts';
import type { Log } from '../operations/logging/logger.ts';
import { createTracer, type TracerSettings } from '../operations/tracing/tracer.ts';
import type { WatcherListener } from '../polling/listeners.ts';
import type { Tracer } from '../submissions/tracing.ts';
import type { Tracker } from '../submissions/tracker.ts';
import type { Ledger } from './ledger-stores.ts';

/**
 * Returns the stored `traceparent` of a submission; undefined if it has none, or if the ledger
 * cannot be read.
 */
type StoredContext = (submissionId: string) => string | undefined;

/**
 * Starts a tracer. `connect` makes it record the polls, commits and deliveries of a ledger's
 * submissions after their intake.
 */
export function createTraces(deps: {
  settings: TracerSettings;
  clock: Clock;
  log: Log;
  version: string;
}) {
  const { settings, clock, log, version } = deps;
  const onDropped = (dropped: { spans: number; reason: string }) =>
    log.warn(dropped, 'tracing.dropped');
  const tracer = createTracer({ settings, clock, version, onDropped });
  return { tracer, connect: (ledger: Ledger) => connectTracing({ tracer, ledger, clock }) };
}

function connectTracing({
  tracer,
  ledger,
  clock,
}: {
  tracer: Tracer;
  ledger: Ledger;
  clock: Clock;
}) {
  const storedContext: StoredContext = (submissionId) => {
    try {
      return ledger.submissions.traceparentOf(submissionId);
    } catch {
      // The next reader of the ledger reports the failure.
      return undefined;
    }
  };
  return {
    listener: listenerOf(tracer, storedContext, () => clock.now()),
    delivery: deliveryTracer(tracer, storedContext),
    /** Tracks the data of a job within a span. */
    intake:
      (track: Tracker['trackInParts']): Tracker['trackInParts'] =>
      async (body) => {
        const span = tracer.start({
          name: 'dawatch-submissions process',
          kind: 'consumer',
          parent: body.traceparent,
          attributes: {
            'messaging.system': 'bullmq',
            'messaging.destination.name': 'dawatch-submissions',
          },
        });
        let error: string | undefined = 'the ledger could not be written';
        try {
          const result = await track({ ...body, traceparent: span.traceparent });
          error = result.kind === 'tracked' ? undefined : result.kind;
          return result;
        } finally {
          span.end({ error });
        }
      },
  };
}

/**
 * Records the poll and the commit of each observation. The spans are created afterwards from the
 * times of the observation, so that polls are not delayed.
 */
function listenerOf(
  tracer: Tracer,
  storedContext: StoredContext,
  now: () => number,
): WatcherListener {
  return {
    recorded({ observation, previousStatus, submission }) {
      const { submissionId, upstream, status } = submission;
      const intake = storedContext(submissionId);
      if (intake === undefined) return;
      const { at, durationMs, kind } = observation;
      const links = [intake];
      const attributes = { 'dawatch.submission_id': submissionId, 'dawatch.upstream': upstream };
      const poll = tracer.start({
        name: 'poll',
        kind: 'client',
        links,
        at: at - durationMs,
        attributes,
      });
      poll.end({
        at,
        error: kind === 'unavailable' || kind === 'unauthorized' ? kind : undefined,
        attributes: { 'dawatch.observation': kind },
      });
      const commit = tracer.start({
        name: 'commit',
        kind: 'internal',
        parent: poll.traceparent,
        links,
        at,
        attributes,
      });
      commit.end({
        at: now(),
        attributes: { 'dawatch.status': status, 'dawatch.previous_status': previousStatus },
      });
    },
  };
}

function deliveryTracer(tracer: Tracer, storedContext: StoredContext): TraceDelivery {
  return (destination, deliveries) => {
    const contexts = deliveries.flatMap(({ event }) =>
      'submission' in event ? (storedContext(event.submission.submissionId) ?? []) : [],
    );
    const [first] = deliveries;
    if (contexts.length === 0 || !first) return undefined;
    const only = deliveries.length === 1 && 'submission' in first.event ? first.event : undefined;
    return tracer.start({
      name: 'deliver',
      kind: 'client',
      links: [...new Set(contexts)],
      attributes: {
        'dawatch.destination': destination,
        'dawatch.event_type': first.event.type,
        'dawatch.deliveries': deliveries.length,
        'dawatch.attempt': first.attempts + 1,
        'dawatch.event_id': only?.id,
        'dawatch.submission_id': only?.submission.submissionId,
      },
    });
  };
}
