import type { Observation } from '../submissions/classify.ts';
import type { Detection, Detections } from '../submissions/store-results.ts';

export type FoundFinal = { submissionId: string; blockNumber: number | null; at: number };

type Scheduled = {
  find(submissionId: string): { trackedAt: number } | undefined;
  openAt(submissionId: string): number;
  awaitsRecheck(submissionId: string): boolean;
  lagOf(found: FoundFinal, now: number): number | null;
};

/** Measures or estimates the time between the finality of submissions and its detection. */
export class DetectionLags {
  readonly #importedAt = new Map<string, number>();

  begin(submissionId: string, now: number): void {
    this.#importedAt.set(submissionId, now);
  }

  /** Must be called before `scheduler.observe`, which removes final submissions. */
  detect(observations: readonly Observation[], scheduler: Scheduled, now: number): Detections {
    return new Map(
      observations.map((observation) => [observation, this.#detect(observation, scheduler, now)]),
    );
  }

  #detect(observation: Observation, scheduler: Scheduled, now: number): Detection | null {
    const { submissionId, at } = observation;
    const importedAt = this.#importedAt.get(submissionId) ?? Number.NEGATIVE_INFINITY;
    this.#importedAt.delete(submissionId);
    if (observation.kind !== 'finalized') return null;
    const { trackedAt = Number.NEGATIVE_INFINITY } = scheduler.find(submissionId) ?? {};
    if (observation.finalityAt !== undefined) {
      // The response may arrive before the announcement.
      const finalityAt = Math.min(observation.finalityAt, at);
      const pollableAt = Math.max(trackedAt, importedAt);
      const lagMs = at - Math.min(at, Math.max(finalityAt, pollableAt));
      return { finalityAt, source: 'chain', lagMs };
    }
    if (scheduler.awaitsRecheck(submissionId)) return null;
    const estimatedMs = scheduler.lagOf(observation, now);
    if (estimatedMs === null) return null;
    const openAt = Math.max(scheduler.openAt(submissionId), importedAt);
    const lagMs = Math.round(Math.max(0, Math.min(estimatedMs, at - openAt)));
    return { finalityAt: at - lagMs, source: 'estimate', lagMs };
  }
}
