import type { Clock } from '../lib/clock.ts';
import type { TraceDelivery } from '../notifications/attempt.ts';
import type { Log } from '../operations/logging/logger.ts';
import { createTracer, type TracerSettings } from '../operations/tracing.ts';
import type { WatcherListener } from '../polling/listeners.ts';
import type { Tracker } from '../submissions/tracker.ts';
import type { Ledger } from './ledger-stores.ts';

/**
 * Starts a tracer that records the intake of submissions, and their polls and deliveries in the
 * same trace.
 */
export function createTraces(deps: {
  settings: TracerSettings;
  ledger: Ledger;
  clock: Clock;
  log: Log;
  version: string;
}) {
  const { ledger, log } = deps;
  const tracer = createTracer({
    ...deps,
    onDropped: (dropped) => log.warn(dropped, 'tracing.dropped'),
  });

  /**
   * Returns the stored `traceparent` of a submission; undefined if it has none, or if the ledger
   * cannot be read.
   */
  const contextOf = (submissionId: string): string | undefined => {
    try {
      return ledger.submissions.traceparentOf(submissionId);
    } catch {
      // The next reader of the ledger reports the failure.
      return undefined;
    }
  };

  /**
   * Records the poll of each observation. The span is created afterwards from the times of the
   * observation, so that polls are not delayed.
   */
  const listener: WatcherListener = {
    recorded({ observation, submission }) {
      const { submissionId, upstream, status } = submission;
      const parent = contextOf(submissionId);
      if (parent === undefined) return;
      const { at, durationMs, kind } = observation;
      const span = tracer.start({ name: 'poll', kind: 'client', parent, at: at - durationMs });
      span.end({
        at,
        error: kind === 'unavailable' || kind === 'unauthorized' ? kind : undefined,
        attributes: {
          'dawatch.submission_id': submissionId,
          'dawatch.upstream': upstream,
          'dawatch.observation': kind,
          'dawatch.status': status,
        },
      });
    },
  };

  /** Records an attempt in the trace of the first submission that has one. */
  const delivery: TraceDelivery = (destination, deliveries) => {
    for (const { event, attempts } of deliveries) {
      const parent = 'submission' in event ? contextOf(event.submission.submissionId) : undefined;
      if (parent === undefined) continue;
      const attributes = {
        'dawatch.destination': destination,
        'dawatch.deliveries': deliveries.length,
        'dawatch.attempt': attempts + 1,
        'dawatch.event_id': event.id,
        'dawatch.event_type': event.type,
      };
      return tracer.start({ name: 'deliver', kind: 'client', parent, attributes });
    }
    return undefined;
  };

  /** Tracks the data of a job within a span. */
  const intake =
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
    };

  return { tracer, listener, delivery, intake };
}
