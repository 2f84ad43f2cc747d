import { extname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { FailedSync } from './failed-sync.ts';

/** The thread is a source file in a checkout, and compiled in the package. */
const THREAD = join(import.meta.dirname, `disk-thread${extname(import.meta.filename)}`);

/**
 * checkpoint: copies the log to the ledger. `descriptor`: of the ledger; open for as long as the
 * process may have written to it, so that its syncs report every failed write. read: runs queries,
 * so that the pages that they need are in the memory of the system.
 */
export type DiskRequest =
  | { kind: 'checkpoint'; file: string; descriptor: number }
  | { kind: 'read'; file: string; queries: readonly string[]; parameters: Record<string, number> };

/**
 * `error`: undefined after success. `failedSync`: set if a file could not be synced. `rows`: the
 * first row of each query of a read.
 */
export type DiskResult = { error?: string; failedSync?: FailedSync | undefined; rows?: unknown[] };

let thread: Worker | undefined;
let newestId = 0;
const waiting = new Map<number, { file: string; onEnd: (result: DiskResult) => void }>();

/**
 * Runs a request in the thread that all ledgers of the process share, one after the other. The
 * thread starts at the first request and does not keep the process running.
 */
export function requestDisk(request: DiskRequest, onEnd: (result: DiskResult) => void): void {
  thread ??= startThread();
  newestId += 1;
  waiting.set(newestId, { file: request.file, onEnd });
  thread.postMessage({ id: newestId, ...request });
}

/** Whether the thread has a connection to a ledger, or is going to open one. */
export function isInDiskThread(file: string): boolean {
  return waiting.values().some((request) => request.file === file);
}

function startThread(): Worker {
  // Without the cache, the thread of a checkout loads the type stripper (row `million`).
  const { NODE_COMPILE_CACHE = '' } = process.env;
  const started = new Worker(THREAD, { env: { NODE_COMPILE_CACHE }, execArgv: [] });
  started.on('message', ({ id, ...result }: DiskResult & { id: number }) => {
    const request = waiting.get(id);
    waiting.delete(id);
    request?.onEnd(result);
  });
  // The event `exit`, which follows, reports the failure.
  started.on('error', () => undefined);
  started.on('exit', () => {
    thread = undefined;
    const all = [...waiting.values()];
    waiting.clear();
    for (const { onEnd } of all) onEnd({ error: 'the thread has ended' });
  });
  // After the listeners are added, because adding a listener makes the thread keep the process
  // running.
  started.unref();
  return started;
}
