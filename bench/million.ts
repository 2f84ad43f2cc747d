// npm run bench:million: what a million tracked submissions cost in memory, at a restart, and per question.
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Ledger } from '../src/ledger/ledger.ts';
import { keepMemorySmall } from '../src/memory.ts';
import { cohortPacing } from '../src/monitor/cohort-policy.ts';
import { Pacer } from '../src/monitor/pacer.ts';
import { seededRandom } from './support/random.ts';

const SUBMISSIONS = Number(process.env.BENCH_SUBMISSIONS ?? 1_000_000);
const BARS = { memoryMb: 400, restartS: 5 };
const QUESTIONS = 200_000;
const SETTLE_MS = 20_000;

const file = process.argv[2];
if (file) await measure(file);
else {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-million-'));
  try {
    fill(join(folder, 'ledger.db'));
    // A process of its own, like after a restart: nothing of the filling is in its memory.
    spawnSync(process.execPath, [import.meta.filename, join(folder, 'ledger.db')], { stdio: 'inherit' });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function fill(path: string): void {
  const ledger = new Ledger({ file: path, now: Date.now() });
  ledger.upstream('default');
  const now = Date.now();
  const limits = { deadlineAt: now + 86_400_000, graceEndsAt: now + 900_000, stuckAt: now + 600_000 };
  for (let done = 0; done < SUBMISSIONS; done += 10_000) {
    const requests = Array.from({ length: 10_000 }, () => ({
      submissionId: randomUUID(),
      upstream: 'default',
      metadata: null,
      callbackUrl: null,
      ...limits,
    }));
    ledger.track(requests, now);
  }
  ledger.close();
}

async function measure(path: string): Promise<void> {
  keepMemorySmall();
  const ledger = new Ledger({ file: path, now: Date.now() });
  const pacer = new Pacer({
    settings: {
      budget: { requests: QUESTIONS, perMs: 1_000, concurrency: QUESTIONS },
      breaker: { failures: 5, probeMs: 1_000, maxProbeMs: 30_000 },
      leaseMs: 30_000,
      recheckMs: 0,
    },
    policy: cohortPacing({ minIntervalMs: 1_000, maxIntervalMs: 60_000 }),
    random: seededRandom(1),
  });
  let now = Date.now();
  const restart = stopwatch();
  for (const item of ledger.watched('default')) pacer.resume(item, now);
  const restartS = restart() / 1_000;
  ledger.close();
  const peakMb = process.resourceUsage().maxRSS / 1_024;
  // Rebuilding leaves garbage that the engine takes away when it has nothing else to do.
  await setTimeout(SETTLE_MS);
  const memoryMb = process.memoryUsage.rss() / 2 ** 20;
  const heapMb = process.memoryUsage().heapUsed / 2 ** 20;

  const asking = stopwatch();
  for (let asked = 0; asked < QUESTIONS; now += 10) {
    for (const submissionId of pacer.next(now, 1_000)) {
      const verdict = { kind: 'pending', state: 'Pending', error: null, answer: '', blockNumber: null } as const;
      pacer.observe({ submissionId, at: now, durationMs: 5, ...verdict }, true, now);
      asked++;
    }
  }
  const questionUs = (asking() * 1_000) / QUESTIONS;

  console.log(`${pacer.size.toLocaleString('en')} submissions tracked`);
  tell(
    'memory of the process',
    memoryMb,
    BARS.memoryMb,
    `MB (its heap ${heapMb.toFixed(0)} MB; at the peak, while rebuilding, ${peakMb.toFixed(0)} MB)`,
  );
  tell('rebuilt from the ledger', restartS, BARS.restartS, 's');
  console.log(`  one question chosen and its answer learned from: ${questionUs.toFixed(1)} µs`);
}

function tell(what: string, value: number, bar: number, unit: string): void {
  console.log(`  ${value <= bar ? '✓' : '✗'} ${what}: ${value.toFixed(1)} ${unit}, bar ${bar}`);
}

function stopwatch(): () => number {
  const startedAt = performance.now();
  return () => performance.now() - startedAt;
}
