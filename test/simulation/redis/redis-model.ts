/** A process or machine that uses Redis. Its connections end with it. */
export type RedisHost = {
  /**
   * Runs a callback later, in the time of the host, unless the host has ended. Returns a function
   * that cancels it.
   */
  after: (delayMs: number, run: () => void) => () => void;
  /** Called before each command and each reply. Returns whether the host still runs. */
  isAlive: () => boolean;
};

type StreamEntry = [id: string, fields: string[]];
export type JobState = 'waiting' | 'active' | 'delayed' | 'completed' | 'failed';
export type StoredJob = {
  id: string;
  name: string;
  data: string;
  state: JobState;
  attemptsStarted: number;
  stalled: number;
  /** The worker that has it, and until when; a stalled job has an expired lock. */
  token?: string | undefined;
  host?: RedisHost;
  lockedUntil: number;
  delayedUntil: number;
  /** The return value of a completed job, or the reason of a failed one. */
  result?: string;
};
/** A queue of BullMQ, jobs in the order in which they were added. */
export type StoredQueue = { jobs: Map<string, StoredJob>; lastId: number };

/** What a server stores, by key. */
export type RedisData = {
  strings: Map<string, { value: string; until: number }>;
  sets: Map<string, Set<string>>;
  streams: Map<string, StreamEntry[]>;
  queues: Map<string, StoredQueue>;
};
export const emptyData = (): RedisData => ({
  strings: new Map(),
  sets: new Map(),
  streams: new Map(),
  queues: new Map(),
});

/** What happens to an event of a job on its way to the stream: it arrives this number of times. */
export type CopiesOf = (event: string) => number;

const systemHost: RedisHost = {
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
  isAlive: () => true,
};

/** BullMQ keeps finished jobs for inspection. Here only some, because nothing reads them. */
const KEPT = 100;
const MAX_EVENTS = 2_000;

/**
 * A model of one Redis server with the queues of BullMQ, in memory: what the modules ioredis.ts and
 * bullmq.ts store, and who waits for it. Each command and each script of BullMQ is one synchronous
 * call of `work`, as Redis runs them.
 */
export class RedisModel {
  /** Changes when the server is restarted. */
  runId = 'run-1';
  isReachable = true;
  /** The clock of the server in epoch milliseconds. */
  now: () => number = Date.now;
  copiesOf: CopiesOf = () => 1;
  #data = emptyData();
  /** Called with the data before and after a loss of data. */
  onLoss: (before: RedisData, after: RedisData) => void = () => {};
  #lastEntryId = '';
  #messages = 0;
  /** Called when a job may be taken, or an entry was added; by key. */
  readonly #waiting = new Map<string, (() => void)[]>();
  /** Breaks a connection. */
  readonly connections = new Set<{ host: RedisHost; breakOff: () => void }>();
  /** The host that opens connections now. */
  host = systemHost;

  /** Drops the connections of a host that has ended. It notices nothing. */
  drop(host: RedisHost): void {
    for (const connection of this.connections)
      if (connection.host === host) this.connections.delete(connection);
  }

  /** The network fails, or the server stops: connections break and cannot be opened. */
  disconnect(): void {
    this.isReachable = false;
    for (const { breakOff } of [...this.connections]) breakOff();
  }

  /** The connections work again. */
  reconnect(): void {
    this.isReachable = true;
  }

  /** Another process continues: with the data, with that of a replica, or without any. */
  replace(data: RedisData = this.#data): void {
    this.runId = `run-${Number(this.runId.slice(4)) + 1}`;
    if (data !== this.#data) this.onLoss(this.#data, data);
    this.#data = data;
    for (const key of this.#waiting.keys()) this.notify(key);
  }

  /** Returns what a replica has now. */
  copy(): RedisData {
    return {
      strings: new Map(this.#data.strings),
      sets: copied(this.#data.sets, (set) => new Set(set)),
      streams: copied(this.#data.streams, (entries) => [...entries]),
      queues: copied(this.#data.queues, ({ jobs, lastId }) => ({
        jobs: copied(jobs, (job) => ({ ...job })),
        lastId,
      })),
    };
  }

  /** Returns the number of jobs that workers of a host have. */
  activeJobs(host: RedisHost): number {
    const jobs = this.#data.queues.values().flatMap((queue) => queue.jobs.values());
    return jobs.filter((job) => job.state === 'active' && job.host === host).toArray().length;
  }

  get(key: string): string | null {
    const found = this.#data.strings.get(key);
    return found && found.until > this.now() ? found.value : null;
  }

  set(key: string, value: string, lastsMs = Number.POSITIVE_INFINITY): 'OK' {
    this.#data.strings.set(key, { value, until: this.now() + lastsMs });
    return 'OK';
  }

  delete(key: string): void {
    this.#data.strings.delete(key);
  }

  setOf(key: string): Set<string> {
    return getOrAdd(this.#data.sets, key, () => new Set());
  }

  queue(key: string): StoredQueue {
    return getOrAdd(this.#data.queues, key, () => ({ jobs: new Map(), lastId: 0 }));
  }

  /** Numbers the commands and replies. */
  nextMessage(): number {
    this.#messages += 1;
    return this.#messages;
  }

  /** Returns the entries of a stream after a position. */
  read(key: string, position: string, count: number): StreamEntry[] {
    const entries = this.#data.streams.get(key) ?? [];
    let from = entries.length;
    while (from > 0 && isAfter((entries[from - 1] as StreamEntry)[0], position)) from -= 1;
    return entries.slice(from, from + count);
  }

  /** Calls `wake` once when something happens at a key. Returns a function that cancels it. */
  wait(key: string, wake: () => void): () => void {
    const waiting = getOrAdd(this.#waiting, key, () => []);
    waiting.push(wake);
    return () => {
      const index = waiting.indexOf(wake);
      if (index >= 0) waiting.splice(index, 1);
    };
  }

  notify(key: string): void {
    for (const wake of this.#waiting.get(key)?.splice(0) ?? []) wake();
  }

  /** Adds an event of a job to the stream of its queue. */
  emit(queue: string, fields: Record<string, string>): void {
    const key = `${queue}:events`;
    const entries = getOrAdd(this.#data.streams, key, () => []);
    for (let copies = this.copiesOf(fields.event ?? ''); copies > 0; copies--) {
      const [ms = '', order = ''] = this.#lastEntryId.split('-');
      const now = Math.floor(this.now());
      // Ids never go back, even if the clock does.
      this.#lastEntryId = now > Number(ms) ? `${now}-0` : `${ms}-${Number(order) + 1}`;
      entries.push([this.#lastEntryId, Object.entries(fields).flat()]);
    }
    if (entries.length > MAX_EVENTS) entries.splice(0, entries.length - MAX_EVENTS);
    this.notify(key);
  }

  /** Ends a job. */
  finish(queue: string, job: StoredJob, state: 'completed' | 'failed', result: string): void {
    Object.assign(job, { state, token: undefined, result });
    const { jobs } = this.queue(queue);
    const finished = [...jobs.values()].filter(
      (one) => one.state === 'completed' || one.state === 'failed',
    );
    for (const { id } of finished.slice(0, -KEPT)) jobs.delete(id);
    const field = state === 'completed' ? 'returnvalue' : 'failedReason';
    this.emit(queue, { event: state, jobId: job.id, [field]: result });
  }
}

/** The Redis of this process. */
export const redisModel = new RedisModel();

function isAfter(id: string, position: string): boolean {
  const [ms = 0, order = 0] = id.split('-').map(Number);
  const [positionMs = 0, positionOrder = 0] = position.split('-').map(Number);
  return ms > positionMs || (ms === positionMs && order > positionOrder);
}

function copied<T>(map: Map<string, T>, copy: (value: T) => T): Map<string, T> {
  return new Map(map.entries().map(([key, value]) => [key, copy(value)]));
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
