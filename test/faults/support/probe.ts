import { onTestFinished } from 'vitest';
import { type KillableServer, sleep } from '../../support/processes/killable-server.ts';

const EVERY_MS = 200;

/**
 * Checks continuously whether a server reports that it is alive and ready, and how much memory it
 * uses.
 */
export function watch(server: KillableServer) {
  const seen = { requestCount: 0, refused: [] as string[], peakMiB: 0, slowestMs: 0 };
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      for (const path of ['/livez', '/readyz']) {
        const from = performance.now();
        const status = await fetch(`${server.url}${path}`).then(
          (response) => response.status,
          (error) => String(error),
        );
        if (status !== 200) seen.refused.push(`${path}: ${status}`);
        seen.slowestMs = Math.max(seen.slowestMs, performance.now() - from);
        seen.requestCount += 1;
      }
      seen.peakMiB = Math.max(seen.peakMiB, server.residentMiB() ?? 0);
      await sleep(EVERY_MS);
    }
  })();
  const end = async () => {
    isOver = true;
    await watching;
    return seen;
  };
  onTestFinished(() => void end());
  return { end };
}
