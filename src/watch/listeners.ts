import type { Finality } from './finality.ts';
import type { RecordedObservation, UpstreamChange } from './ports.ts';

/** What happens inside the monitor, for logs, statistics and live views. Everything reported here is committed. */
export type WatcherListener = {
  recorded?: (recorded: RecordedObservation) => void;
  finalized?: (finality: Finality) => void;
  upstream?: (change: UpstreamChange) => void;
  writeFailed?: (error: unknown) => void;
  /** A listener threw: a defect of that listener. */
  listenerFailed?: (error: unknown) => void;
};

/**
 * One listener that calls each of these in order and never throws. An observation is committed before listeners are called,
 * so an error of a listener must not be taken for an error of the recording: the observation would be recorded twice.
 */
export function combineListeners(listeners: readonly WatcherListener[]): Required<WatcherListener> {
  const attempt = (call: () => void, onError: (error: unknown) => void): void => {
    try {
      call();
    } catch (error) {
      onError(error);
    }
  };
  const listenerFailed = (error: unknown) => {
    for (const listener of listeners)
      attempt(
        () => listener.listenerFailed?.(error),
        () => undefined,
      );
  };
  const each = (call: (listener: WatcherListener) => void): void => {
    for (const listener of listeners) attempt(() => call(listener), listenerFailed);
  };
  return {
    recorded: (recorded) => each((listener) => listener.recorded?.(recorded)),
    finalized: (finality) => each((listener) => listener.finalized?.(finality)),
    upstream: (change) => each((listener) => listener.upstream?.(change)),
    writeFailed: (error) => each((listener) => listener.writeFailed?.(error)),
    listenerFailed,
  };
}
