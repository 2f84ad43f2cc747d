import { SUBMISSIONS_QUEUE } from '../../../src/redis/intake.ts';
import type { Machine } from '../machine/machine.ts';
import type { Random } from '../machine/random.ts';
import { addJobs } from '../redis/bullmq.ts';
import { redisModel } from '../redis/redis-model.ts';
import { MINUTE_MS, PREFIX } from './server.ts';
import type { Upstream } from './upstream.ts';

const MEAN_PAUSE_MS = 60 * MINUTE_MS;
const LOOK_MS = 5_000;
/** How long a job may wait in calm times. */
const WAIT_MS = 2 * MINUTE_MS;
const CALM_MS = 5 * MINUTE_MS;
const TRACKED = ['accepted', 'already_tracked', 'already_final', 'retracked'];

type ProducerDeps = {
  machine: Machine;
  upstream: Upstream;
  random: Random;
  /** Called with the submissions of a completed job. */
  onAcknowledged: (ids: readonly string[]) => void;
  onDefect: (text: string) => void;
  /** When jobs could not be taken, the last time. */
  disturbedAt: () => number;
};

/**
 * A service that tracks submissions through the queue of a ledger, as docs/queues.md describes: it
 * keeps each job until it is completed, and adds a job that Redis has lost again.
 */
export class Producer {
  isActive = true;
  readonly #deps: ProducerDeps;
  readonly #queue = `${PREFIX}:${SUBMISSIONS_QUEUE}`;
  /** By the id of the job: its submissions, and when it was added the last time. */
  readonly #open = new Map<string, { ids: string[]; at: number }>();
  /** How often Redis has lost data. */
  #losses = 0;

  constructor(deps: ProducerDeps) {
    this.#deps = deps;
    this.#pause();
  }

  /** Jobs may be gone. */
  lose(): void {
    this.#losses += 1;
  }

  /** Whether every job is completed. */
  hasEnded(): boolean {
    return this.#open.size === 0;
  }

  #pause(): void {
    const { machine, random } = this.#deps;
    machine.later(random.waitMs(MEAN_PAUSE_MS), () => {
      if (!this.isActive) return;
      this.submit();
      this.#pause();
    });
  }

  /** Adds a job. */
  submit(): void {
    const { random, upstream } = this.#deps;
    const ids = Array.from({ length: random.between(1, 3) }, () => upstream.submit());
    this.#add(`track-${random.bytes(8).toString('hex')}`, ids);
  }

  #add(jobId: string, ids: string[]): void {
    const { machine } = this.#deps;
    // Like the examples, a producer that cannot reach Redis tries again later.
    if (redisModel.isReachable) {
      this.#open.set(jobId, { ids, at: machine.now });
      addJobs(redisModel, this.#queue, [
        { name: 'track', data: { submission_ids: ids }, opts: { jobId } },
      ]);
      this.#look(jobId, this.#losses);
    } else machine.later(LOOK_MS, () => this.#add(jobId, ids));
  }

  #look(jobId: string, losses: number): void {
    this.#deps.machine.later(LOOK_MS, () => {
      if (redisModel.isReachable) this.#check(jobId, losses);
      else this.#look(jobId, losses);
    });
  }

  #check(jobId: string, losses: number): void {
    const { machine, onAcknowledged, onDefect, disturbedAt } = this.#deps;
    const { jobs } = redisModel.queue(this.#queue);
    const { ids, at } = this.#open.get(jobId) as { ids: string[]; at: number };
    const job = jobs.get(jobId);
    if (!job) {
      if (losses === this.#losses)
        onDefect(`the job ${jobId} is gone, although Redis has lost nothing`);
      this.#add(jobId, ids);
      return;
    }
    if (job.state === 'failed') onDefect(`the job ${jobId} failed: ${job.result}`);
    if (job.state !== 'completed') {
      const from = Math.max(at, disturbedAt() + CALM_MS);
      // The clock of the server may have been set back since it delayed the job.
      const isDelayed = job.state === 'delayed' && job.delayedUntil > machine.wall();
      if (machine.now - from > WAIT_MS && !isDelayed)
        onDefect(`the job ${jobId} is ${job.state} for ${machine.now - at} ms`);
      this.#look(jobId, losses);
      return;
    }
    const counts = JSON.parse(job.result ?? '{}');
    if (TRACKED.reduce((sum, name) => sum + counts[name], 0) !== ids.length)
      onDefect(`the job ${jobId} of ${ids.length} submissions returned ${job.result}`);
    jobs.delete(jobId);
    this.#open.delete(jobId);
    onAcknowledged(ids);
  }
}
