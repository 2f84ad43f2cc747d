// npm run bench:dashboard: measures the dashboard in a real browser with a million submissions and
// 200 events per second.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { type App, startApp } from '../src/app.ts';
import { DawatchClient } from '../src/client/index.ts';
import { systemClock } from '../src/lib/clock.ts';
import { createLog } from '../src/operations/logging/logger.ts';
import { contextOfRequest } from '../src/submissions/transition.ts';
import { Ledger } from '../src/wiring/ledger-stores.ts';
import { loadConfig } from '../src/wiring/settings.ts';
import { openChromium } from '../test/support/app/chromium.ts';

const SUBMISSIONS = Number(process.env.BENCH_SUBMISSIONS ?? 1_000_000);
/** The number of open submissions; each produces one event when it is cancelled. */
const OPEN = 20_000;
const EVENTS_PER_S = 200;
const WATCH_S = 20;
const REPEATS = 10;
const TOKEN = 'an-admin-token-for-this-run-0123456789';

const folder = mkdtempSync(join(tmpdir(), 'dawatch-dashboard-'));
const file = join(folder, 'ledger.db');
const ids = fill(file);
console.log(
  `${SUBMISSIONS.toLocaleString('en')} submissions, ${OPEN.toLocaleString('en')} of them open`,
);
const app = await start(file);
const browser = await openChromium();
try {
  const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
  await page.goto(app.url);
  await page.getByLabel('Token', { exact: true }).fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.getByText('Live', { exact: true }).waitFor();
  await measurePages(page);
  const client = new DawatchClient({ url: app.url, apiKey: TOKEN });
  for (const [name, hash] of Object.entries({ overview: '#/', 'the list': '#/submissions' }))
    await measureLoad(page, client, name, hash);
} finally {
  await browser.close();
  await app.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Returns the ids of the open submissions. */
function fill(path: string): string[] {
  const ledger = new Ledger({ file: path, now: Date.now() });
  ledger.upstreams.get('default');
  const now = Date.now();
  const limits = {
    deadlineAt: now + 86_400_000,
    graceEndsAt: now + 900_000,
    stuckAt: now + 600_000,
  };
  const context = contextOfRequest(now);
  const open: string[] = [];
  for (let done = 0; done < SUBMISSIONS; done += 10_000) {
    const ids = Array.from({ length: 10_000 }, () => randomUUID());
    ledger.store.track(
      [
        ids.map((submissionId) => ({
          submissionId,
          upstream: 'default',
          metadata: null,
          callbackUrl: null,
          ...limits,
        })),
      ],
      now,
    );
    const response = JSON.stringify({
      state: 'Finalized',
      error: null,
      data: { block_number: done, block_hash: '0x0' },
    });
    if (SUBMISSIONS - done <= OPEN) open.push(...ids);
    else
      ledger.store.record(
        ids.map((submissionId) => {
          const verdict = {
            kind: 'finalized',
            state: 'Finalized',
            error: null,
            envelope: response,
            blockNumber: done,
          } as const;
          return { submissionId, at: now + 1, durationMs: 5, ...verdict };
        }),
        context,
      );
  }
  ledger.close();
  return open;
}

function start(database: string): Promise<App> {
  const env = {
    // No server listens on this port, so only cancellations change submissions.
    DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1',
    DAWATCH_UPSTREAM_API_KEY: 'none',
    DAWATCH_DATABASE: database,
    DAWATCH_PORT: '0',
    DAWATCH_ADMIN_TOKEN: TOKEN,
  };
  const { config } = loadConfig({ file: null, env });
  return startApp({
    config,
    log: createLog({ level: 'silent' }, process.stderr),
    clock: systemClock,
    random: Math.random,
    onNewKey: () => undefined,
  });
}

/**
 * Returns the milliseconds from the change of the address to the requested content, by the page's
 * clock.
 */
async function measurePages(page: Page): Promise<void> {
  const { submissions } = await new DawatchClient({ url: app.url, apiKey: TOKEN }).list({
    status: 'finalized',
    limit: 1,
  });
  const one = submissions[0]?.submission_id ?? '';
  const pages: Record<string, [hash: string, selector: string]> = {
    overview: ['#/', '.counts strong'],
    'the list': ['#/submissions', 'tbody tr'],
    'those that are finalized': ['#/submissions?status=finalized', 'tbody tr'],
    'search by the beginning of an id': [`#/submissions?prefix=${one.slice(0, 4)}`, 'tbody tr'],
    'a common beginning': [`#/submissions?prefix=${one.slice(0, 1)}`, 'tbody tr'],
    'one submission': [`#/submissions/${one}`, '.timeline li'],
  };
  for (const [name, [hash, selector]] of Object.entries(pages)) {
    const times: number[] = [];
    for (let repeat = 0; repeat < REPEATS; repeat++) {
      const ms = await page.evaluate<number>(`(async () => {
        location.hash = '#/nowhere';
        while (document.querySelector(${JSON.stringify(selector)})) await new Promise(requestAnimationFrame);
        const startedAt = performance.now();
        location.hash = ${JSON.stringify(hash)};
        while (!document.querySelector(${JSON.stringify(selector)})) await new Promise(requestAnimationFrame);
        return performance.now() - startedAt;
      })()`);
      times.push(ms);
    }
    times.sort((a, b) => a - b);
    const [min, middle, max] = [times[0], times[times.length >> 1], times.at(-1)].map((ms) =>
      ms?.toFixed(0),
    );
    console.log(`  ${name}: shown after ${middle} ms (${min} to ${max})`);
  }
}

async function measureLoad(
  page: Page,
  client: DawatchClient,
  name: string,
  hash: string,
): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await setTimeout(1_000);
  await page.evaluate(`(() => {
    const seen = { frames: [], longTasks: [] };
    window.seen = seen;
    new PerformanceObserver((list) => seen.longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' });
    let last = performance.now();
    const frame = (now) => { seen.frames.push(now - last); last = now; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
  })()`);
  const heapMb = await heapOf(page);
  const startedAt = performance.now();
  let sent = 0;
  while (performance.now() - startedAt < WATCH_S * 1_000) {
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * EVENTS_PER_S);
    // The newest submissions, of which the first are in the visible list.
    const batch = ids.splice(Math.max(0, ids.length - Math.min(50, due - sent)));
    await Promise.all(batch.map((id) => client.cancel(id)));
    sent += batch.length;
    await setTimeout(5);
  }
  const { frames, longTasks } = await page.evaluate<{ frames: number[]; longTasks: number[] }>(
    'window.seen',
  );
  frames.sort((a, b) => a - b);
  const frame = (share: number) => frames[Math.floor(frames.length * share)]?.toFixed(0);
  const nodes = await page.evaluate<number>('document.querySelectorAll("*").length');
  console.log(
    `  ${name} at ${(sent / WATCH_S).toFixed(0)} events a second for ${WATCH_S} s: a frame every ${frame(0.5)} ms (p99 ${frame(0.99)} ms, ` +
      `longest ${frame(0.99999)} ms), ${longTasks.length} tasks over 50 ms (longest ${Math.max(0, ...longTasks).toFixed(0)} ms), ` +
      `${nodes} elements, heap ${heapMb.toFixed(0)} → ${(await heapOf(page)).toFixed(0)} MB`,
  );
}

async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize / 2 ** 20;
}
