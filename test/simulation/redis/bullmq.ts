// Stands in for the package bullmq: queues and workers at the model of Redis.

import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { Redis } from './ioredis.ts';
import type { JobState, RedisModel, StoredJob } from './redis-model.ts';

export class UnrecoverableError extends Error {}
export class DelayedError extends Error {}

type Added = { name: string; data: unknown; opts?: { jobId?: string } };

export class Queue extends EventEmitter {
  readonly name: string;
  readonly #key: string;
  readonly #connection: Redis;

  constructor(name: string, { prefix, connection }: { prefix: string; connection: Redis }) {
    super();
    this.name = name;
    this.#key = `${prefix}:${name}`;
    this.#connection = connection;
  }

  async addBulk(added: readonly Added[]): Promise<void> {
    await this.#connection.run((model) => addJobs(model, this.#key, added));
  }

  add(name: string, data: unknown, opts: { jobId?: string } = {}): Promise<void> {
    return this.addBulk([{ name, data, opts }]);
  }

  /** Removes a job unless a worker has it. */
  remove(id: string): Promise<number> {
    return this.#connection.run((model) => {
      const { jobs } = model.queue(this.#key);
      const job = jobs.get(id);
      return job && !isLocked(job, model) && jobs.delete(id) ? 1 : 0;
    });
  }

  /** Removes the waiting jobs. */
  drain(): Promise<void> {
    return this.#connection.run((model) => {
      const { jobs } = model.queue(this.#key);
      for (const { id, state } of jobs.values()) if (state === 'waiting') jobs.delete(id);
    });
  }

  getJobs(states: readonly JobState[]): Promise<{ data: unknown }[]> {
    return this.#connection.run((model) =>
      [...model.queue(this.#key).jobs.values()]
        .filter(({ state }) => states.includes(state))
        .map(({ data }) => ({ data: JSON.parse(data) })),
    );
  }

  async getWaitingCount(): Promise<number> {
    return (await this.getJobs(['waiting'])).length;
  }

  async close(): Promise<void> {}
}

/** A job at the worker that has it. */
export class Job {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  readonly attemptsStarted: number;
  readonly #key: string;
  readonly #connection: Redis;

  constructor({ id, name, data, attemptsStarted }: StoredJob, key: string, connection: Redis) {
    this.id = id;
    this.name = name;
    this.data = JSON.parse(data);
    this.attemptsStarted = attemptsStarted;
    this.#key = key;
    this.#connection = connection;
  }

  async updateProgress(progress: unknown): Promise<void> {
    const data = JSON.stringify(progress);
    const isKnown = await this.#connection.run((model) => {
      if (!model.queue(this.#key).jobs.has(this.id)) return false;
      model.emit(this.#key, { event: 'progress', jobId: this.id, data });
      return true;
    });
    if (!isKnown) throw new Error(`Missing key for job ${this.id}`);
  }

  async moveToDelayed(until: number, token: string | undefined): Promise<void> {
    await this.#connection.run((model) => {
      const job = model.queue(this.#key).jobs.get(this.id);
      if (job?.token !== token || !job) return;
      Object.assign(job, { state: 'delayed', token: undefined, delayedUntil: until });
      model.notify(this.#key);
    });
  }
}

type WorkerOptions = {
  prefix: string;
  connection: Redis;
  autorun?: boolean;
  concurrency: number;
  lockDuration: number;
  stalledInterval?: number;
  maxStalledCount: number;
};
type Process = (job: Job, token: string) => Promise<unknown>;

/**
 * The longest time after which a worker with free places looks for jobs although nothing woke it.
 */
const LOOK_MS = 30_000;
const RETRY_MS = 1_000;
const STALLED_CHECK_MS = 30_000;

export class Worker extends EventEmitter {
  readonly #key: string;
  readonly #process: Process;
  readonly #options: WorkerOptions;
  /** One connection waits for jobs, which others cannot share. */
  readonly #blocking: Redis;
  readonly #token = randomUUID();
  readonly #jobs = new Set<Promise<void>>();
  #isRunning = false;
  #isTaking = false;
  /** Whether there may be more jobs than those that it is taking. */
  #isWoken = false;
  #isClosed = false;
  #cancelWait: (() => void) | undefined;

  constructor(name: string, process: Process, options: WorkerOptions) {
    super();
    this.#key = `${options.prefix}:${name}`;
    this.#process = process;
    this.#options = options;
    this.#blocking = options.connection.duplicate();
    if (options.autorun !== false) void this.run();
  }

  async run(): Promise<void> {
    this.#checkStalled();
    this.resume();
  }

  resume(): void {
    this.#isRunning = true;
    void this.#take();
  }

  async pause(): Promise<void> {
    this.#isRunning = false;
    this.#cancelWait?.();
  }

  /** Takes no more jobs, and waits for those that it has. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.pause();
    await Promise.all(this.#jobs);
    this.#blocking.disconnect();
  }

  async #take(): Promise<void> {
    const { connection, concurrency, lockDuration } = this.#options;
    this.#isWoken = true;
    if (this.#isTaking) return;
    this.#isTaking = true;
    const retry = () => {
      connection.host.after(RETRY_MS, () => void this.#take());
      return undefined;
    };
    while (this.#isWoken && this.#isRunning && this.#jobs.size < concurrency) {
      this.#isWoken = false;
      const taken = await this.#blocking
        .run((model) => this.#takeNext(model, lockDuration))
        .catch(retry);
      if (taken === undefined) continue;
      this.#isWoken = true;
      // A job that was taken while the worker paused runs nevertheless.
      this.#start(new Job(taken, this.#key, connection));
    }
    this.#isTaking = false;
  }

  #takeNext(model: RedisModel, lockMs: number): StoredJob | undefined {
    const now = model.now();
    let lookMs = LOOK_MS;
    for (const job of model.queue(this.#key).jobs.values()) {
      // BullMQ compares the times of delayed jobs with the clock of the worker, which also sets
      // them.
      const delayMs = job.state === 'delayed' ? job.delayedUntil - Date.now() : LOOK_MS;
      if (delayMs <= 0) job.state = 'waiting';
      lookMs = Math.min(lookMs, delayMs);
      if (job.state !== 'waiting') continue;
      job.attemptsStarted += 1;
      Object.assign(job, { state: 'active', token: this.#token, lockedUntil: now + lockMs });
      job.host = this.#options.connection.host;
      return { ...job };
    }
    this.#waitForJobs(model, lookMs);
    return undefined;
  }

  #waitForJobs(model: RedisModel, lookMs: number): void {
    const { host } = this.#options.connection;
    this.#cancelWait?.();
    const wake = () => {
      this.#cancelWait?.();
      this.#cancelWait = undefined;
      if (host.isAlive()) void this.#take();
    };
    const cancels = [model.wait(this.#key, () => host.after(1, wake)), host.after(lookMs, wake)];
    this.#cancelWait = () => {
      for (const cancel of cancels) cancel();
    };
  }

  #start(job: Job): void {
    const ended = this.#run(job).finally(() => {
      this.#jobs.delete(ended);
      void this.#take();
    });
    this.#jobs.add(ended);
  }

  async #run(job: Job): Promise<void> {
    const { connection, lockDuration } = this.#options;
    const stop = this.#keepLocked(job, lockDuration);
    const finish = (state: 'completed' | 'failed', result: string) =>
      connection
        .run((model) => {
          const stored = model.queue(this.#key).jobs.get(job.id);
          // A stalled job has another owner, or has ended.
          if (stored?.state === 'active' && stored.token === this.#token)
            model.finish(this.#key, stored, state, result);
        })
        .catch(() => undefined);
    try {
      const result = await this.#process(job, this.#token);
      await finish('completed', JSON.stringify(result));
    } catch (error) {
      if (!(error instanceof DelayedError)) await finish('failed', (error as Error).message);
    } finally {
      stop();
    }
  }

  /** Renews the lock of a job until the returned function is called. */
  #keepLocked(job: Job, lockMs: number): () => void {
    const { connection } = this.#options;
    const renew = () => {
      cancel = connection.host.after(lockMs / 2, () => {
        void connection
          .run((model) => {
            const stored = model.queue(this.#key).jobs.get(job.id);
            if (stored?.token === this.#token) stored.lockedUntil = model.now() + lockMs;
          })
          .catch(() => undefined);
        renew();
      });
    };
    let cancel = () => {};
    renew();
    return () => cancel();
  }

  /** Jobs whose lock has expired wait again, or fail if that has happened too often. */
  #checkStalled(): void {
    const { connection, stalledInterval = STALLED_CHECK_MS, maxStalledCount } = this.#options;
    connection.host.after(stalledInterval, () => {
      if (this.#isClosed) return;
      void connection
        .run((model) => {
          for (const job of model.queue(this.#key).jobs.values()) {
            if (job.state !== 'active' || isLocked(job, model)) continue;
            model.notify(this.#key);
            job.stalled += 1;
            if (job.stalled > maxStalledCount)
              model.finish(this.#key, job, 'failed', 'job stalled more than allowable limit');
            else Object.assign(job, { state: 'waiting', token: undefined });
          }
        })
        .catch(() => undefined);
      this.#checkStalled();
    });
  }
}

/** Adds jobs to a queue, which its key names. */
export function addJobs(model: RedisModel, key: string, added: readonly Added[]): void {
  const queue = model.queue(key);
  for (const { name, data, opts } of added) {
    queue.lastId += 1;
    const id = opts?.jobId ?? String(queue.lastId);
    const rest = { attemptsStarted: 0, stalled: 0, lockedUntil: 0, delayedUntil: 0 };
    // A job with a known id is ignored.
    if (!queue.jobs.has(id))
      queue.jobs.set(id, { id, name, data: JSON.stringify(data), state: 'waiting', ...rest });
  }
  model.notify(key);
}

function isLocked({ state, lockedUntil }: StoredJob, model: RedisModel): boolean {
  return state === 'active' && lockedUntil > model.now();
}
