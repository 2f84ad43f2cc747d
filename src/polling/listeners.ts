import type { Observation } from '../submissions/classify.ts';
import type { EndedSubmission, RecordedObservation } from '../submissions/store-results.ts';
import type { UpstreamChange } from '../submissions/upstream.ts';
import type { Finality } from './detection.ts';

/**
 * Receives what the watcher does, for logs, statistics and live views. Everything but `polled` is
 * reported after its commit.
 */
export type WatcherListener = {
  /** Called for every result of a poll, before its commit. */
  polled?: (upstream: string, observation: Observation) => void;
  /** Called for every recorded observation. */
  recorded?: (recorded: RecordedObservation) => void;
  /** Called for every submission that ended at its deadline, without an observation. */
  expired?: (ended: EndedSubmission) => void;
  finalized?: (finality: Finality) => void;
  /** The circuit breaker opened, closed, or is open for another reason than before. */
  upstream?: (change: UpstreamChange) => void;
  /** An access to the ledger failed; it is retried. */
  writeFailed?: (error: unknown) => void;
  /** The ledger can be used again. */
  ledgerRecovered?: () => void;
  /** A listener threw, which is a defect of that listener. */
  listenerFailed?: (error: unknown) => void;
};

/**
 * Returns a listener that calls all of these in order and never throws. Listeners are called after
 * the commit, so an error of a listener must not look like a failed commit: the observation would
 * be recorded twice.
 */
export function combineListeners(listeners: readonly WatcherListener[]): Required<WatcherListener> {
  const attempt = (call: () => void, onError: (error: unknown) => void): void => {
    try {
      call();
    } catch (error) {
      onError(error);
    }
  };
  const ignore = () => undefined;
  const listenerFailed = (error: unknown) => {
    for (const listener of listeners) attempt(() => listener.listenerFailed?.(error), ignore);
  };
  const each = (call: (listener: WatcherListener) => void): void => {
    for (const listener of listeners) attempt(() => call(listener), listenerFailed);
  };
  return {
    polled: (upstream, observation) => each((listener) => listener.polled?.(upstream, observation)),
    recorded: (recorded) => each((listener) => listener.recorded?.(recorded)),
    expired: (ended) => each((listener) => listener.expired?.(ended)),
    finalized: (finality) => each((listener) => listener.finalized?.(finality)),
    upstream: (change) => each((listener) => listener.upstream?.(change)),
    writeFailed: (error) => each((listener) => listener.writeFailed?.(error)),
    ledgerRecovered: () => each((listener) => listener.ledgerRecovered?.()),
    listenerFailed,
  };
}
