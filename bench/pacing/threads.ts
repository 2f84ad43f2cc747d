import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Measurement } from './measure.ts';
import type { Summary } from './summary.ts';

export type Threads = {
  measure(measurement: Measurement): Promise<Summary>;
  close(): Promise<void>;
};

/**
 * One thread per processor. Each takes the next measurement when it has finished one, in the order
 * of the calls.
 */
export function startThreads(): Threads {
  const workers = Array.from(
    { length: availableParallelism() },
    () => new Worker(new URL('./worker.ts', import.meta.url)),
  );
  const idle = [...workers];
  const waiting: ((worker: Worker) => void)[] = [];

  function release(worker: Worker): void {
    const take = waiting.shift();
    if (take) take(worker);
    else idle.push(worker);
  }

  return {
    async measure(measurement) {
      const worker = idle.pop() ?? (await new Promise<Worker>((take) => waiting.push(take)));
      worker.postMessage(measurement);
      const [summary] = (await once(worker, 'message')) as [Summary];
      release(worker);
      return summary;
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
}
