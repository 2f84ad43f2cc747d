import { readdirSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { reading, scrape } from '../../support/app/metrics.ts';
import { type KillableServer, sleep } from '../../support/processes/killable-server.ts';
import { quantile } from '../support/flood.ts';

const EVERY_MS = 1_000;
const WINDOWS = 5;
/**
 * The permitted growth from the second window to the last one; the memory of a process grows in
 * steps.
 */
const MAX_RISE = { heapMib: 16, mib: 96, handles: 20 };

type Sample = {
  /** Resident memory of the process. */
  mib: number;
  /** The part of it that V8 reserves for objects; the rest is code, caches and buffers. */
  reservedMib: number;
  /** The part of the heap that objects use, including garbage. */
  heapMib: number;
  /** Open files and connections. */
  handles: number;
};

/** Measures a server once a second. */
export function measure(server: KillableServer) {
  const samples: Sample[] = [];
  let isOver = false;
  const measuring = (async () => {
    while (!isOver) {
      const mib = server.residentMiB();
      const handles = handlesOf(server.pid());
      const { text } = await scrape(server.url);
      const heap = reading(text, 'nodejs_heap_size_used_bytes');
      const reserved = reading(text, 'nodejs_heap_size_total_bytes');
      if (
        mib !== undefined &&
        handles !== undefined &&
        heap !== undefined &&
        reserved !== undefined
      )
        samples.push({
          mib,
          reservedMib: reserved / 1_048_576,
          heapMib: heap / 1_048_576,
          handles,
        });
      await sleep(EVERY_MS);
    }
  })();
  measuring.catch(() => undefined);
  onTestFinished(() => {
    isOver = true;
  });
  return {
    /**
     * Returns the samples in windows of equal length, of which the first is the warm-up; undefined
     * if the system reports none.
     */
    async end(): Promise<Sample[] | undefined> {
      isOver = true;
      await measuring;
      const size = Math.floor(samples.length / WINDOWS);
      if (size === 0) return undefined;
      return Array.from({ length: WINDOWS }, (_, window) =>
        windowOf(samples.slice(window * size, (window + 1) * size)),
      );
    },
  };
}

/** Returns medians; of the heap the minimum, which is the value after a garbage collection. */
function windowOf(samples: readonly Sample[]): Sample {
  const of = (what: keyof Sample, part: number) =>
    quantile(
      samples.map((sample) => sample[what]),
      part,
    );
  return {
    mib: of('mib', 0.5),
    reservedMib: of('reservedMib', 0.5),
    heapMib: of('heapMib', 0),
    handles: of('handles', 0.5),
  };
}

export function tableOf(windows: readonly Sample[]): string {
  const rows = windows.map(
    ({ mib, reservedMib, heapMib, handles }, index) =>
      `| ${[index + 1, mib.toFixed(0), reservedMib.toFixed(0), heapMib.toFixed(1), handles].join(' | ')} |`,
  );
  const head =
    '| fifth of the time | memory, MiB (median) | heap reserved, MiB (median) | heap in use, MiB (least) | open files (median) |';
  return [head, '|---|---|---|---|---|', ...rows].join('\n');
}

/** Returns the values that grew beyond their limit from the second window to the last. */
export function rises([, second, ...later]: readonly Sample[]): string[] {
  const last = later.at(-1);
  if (!second || !last) return [];
  return (['heapMib', 'mib', 'handles'] as const)
    .filter((what) => last[what] - second[what] > MAX_RISE[what])
    .map(
      (what) =>
        `${what}: from ${second[what].toFixed(0)} to ${last[what].toFixed(0)}, a rise of ${MAX_RISE[what]} at most`,
    );
}

function handlesOf(pid: number | undefined): number | undefined {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return undefined;
  }
}
