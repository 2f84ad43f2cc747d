import type { Observation } from '../submissions/classify.ts';
import type {
  Detection,
  EndedSubmission,
  RecordedObservation,
} from '../submissions/store-results.ts';
import { Status } from '../submissions/submission.ts';
import type { UpstreamChange } from '../submissions/upstream.ts';

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

/** The first observation that found a submission final. Times are epoch milliseconds. */
export type Finality = {
  upstream: string;
  at: number;
  trackedAt: number;
  /**
   * The latest time at which the submission was certainly not final: tracking began then, or a poll
   * found it or its block open. For an import whose first poll finds it final, the time of the
   * import, because dawatch could not have found it earlier.
   */
  after: number;
  /** How late it was detected; null: not enough was known. */
  detection: Detection | null;
  /** Number of requests for it. */
  polls: number;
};

/** A poll that found a submission final at `at`. */
export type FoundFinal = { submissionId: string; blockNumber: number | null; at: number };

/** A block became final between `after` and `by`. */
type Bounds = { after: number; by: number };

/**
 * Blocks that are remembered; the submissions of one block are found final within minutes of each
 * other.
 */
const BLOCKS = 64;

/** `after`: as in Finality; -Infinity if it is not known. */
type Detected = { after: number; detection: Detection | null };

/** Returns the finalities among recorded observations. `detections`: see DetectionLags. */
export function finalitiesOf(
  recorded: readonly RecordedObservation[],
  detections: ReadonlyMap<Observation, Detected>,
): Finality[] {
  return recorded.flatMap(({ observation, result, previousStatus, submission }) => {
    if (observation.kind !== 'finalized' || previousStatus === Status.finalized || !result.change)
      return [];
    const { upstream, trackedAt, polls } = submission;
    const { after = trackedAt, detection = null } = detections.get(observation) ?? {};
    return [
      {
        upstream,
        at: observation.at,
        trackedAt,
        after: Math.max(trackedAt, after),
        detection,
        polls,
      },
    ];
  });
}

/** Knows, estimates and bounds the time between the finality of submissions and its detection. */
export class DetectionLags {
  readonly #blocks = new Map<number, Bounds>();
  /** Times of the imports that have not been polled yet, by submission id. */
  readonly #importedAt = new Map<string, number>();

  /** Records that a submission that another system tracked before is polled from `now` on. */
  begin(submissionId: string, now: number): void {
    this.#importedAt.set(submissionId, now);
  }

  /**
   * Returns the detection of each observation that found a submission final. Must be called before
   * `scheduler.observe`, which removes final submissions.
   */
  of(
    observations: readonly Observation[],
    scheduler: {
      find(id: string): { trackedAt: number } | undefined;
      openAt(id: string): number;
      awaitsRecheck(id: string): boolean;
      lagOf(found: FoundFinal, now: number): number | null;
    },
    now: number,
  ): Map<Observation, Detected> {
    const found = observations.flatMap((observation) => {
      const importedAt = this.#importedAt.get(observation.submissionId) ?? Number.NEGATIVE_INFINITY;
      this.#importedAt.delete(observation.submissionId);
      if (observation.kind !== 'finalized' || scheduler.awaitsRecheck(observation.submissionId))
        return [];
      const openAt = scheduler.openAt(observation.submissionId);
      const { submissionId, blockNumber, at } = observation;
      if (blockNumber !== null) this.#learn(blockNumber, { after: openAt, by: at });
      const { trackedAt = Number.NEGATIVE_INFINITY } = scheduler.find(submissionId) ?? {};
      return [
        {
          observation,
          openAt: Math.max(openAt, importedAt),
          pollableAt: Math.max(trackedAt, importedAt),
          estimatedMs: scheduler.lagOf(observation, now),
        },
      ];
    });
    return new Map(
      found.map(({ observation, openAt, pollableAt, estimatedMs }) => {
        const { blockNumber, at, finalityAt } = observation;
        const block = blockNumber === null ? undefined : this.#blocks.get(blockNumber);
        const after = Math.max(openAt, Math.min(block?.after ?? openAt, at));
        const detection =
          finalityAt === undefined
            ? estimated(at, estimatedMs, after)
            : announced(at, finalityAt, pollableAt);
        return [observation, { after, detection }];
      }),
    );
  }

  /** Ignores an `after` behind the block's finality: the upstream returned that submission late. */
  #learn(block: number, { after, by }: Bounds): void {
    const known = this.#blocks.get(block);
    if (known) {
      known.by = Math.min(known.by, by);
      if (after < known.by) known.after = Math.max(known.after, after);
      known.after = Math.min(known.after, known.by);
      return;
    }
    this.#blocks.set(block, { after, by });
    const [oldest] = this.#blocks.keys();
    if (this.#blocks.size > BLOCKS && oldest !== undefined) this.#blocks.delete(oldest);
  }
}

/** `at`: when the response arrived. `after`: as in Finality. */
function estimated(at: number, lagMs: number | null, after: number): Detection | null {
  if (lagMs === null) return null;
  const boundedMs = Math.round(Math.max(0, Math.min(lagMs, at - after)));
  return { finalityAt: at - boundedMs, source: 'estimate', lagMs: boundedMs };
}

/**
 * `at`: when the response arrived, which may be before the announcement. `pollableAt`: since when
 * dawatch could poll the submission.
 */
function announced(at: number, announcedAt: number, pollableAt: number): Detection {
  const finalityAt = Math.min(announcedAt, at);
  return {
    finalityAt,
    source: 'chain',
    lagMs: at - Math.min(at, Math.max(finalityAt, pollableAt)),
  };
}
