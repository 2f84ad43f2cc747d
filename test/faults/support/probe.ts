import { onTestFinished } from 'vitest';
import { type KillableServer, sleep } from '../../support/processes/killable-server.ts';

/**
 * Checks continuously whether a server reports that it is alive and ready, and how much memory it
 * uses.
 */
export function watch(
  server: KillableServer,
  { paths = ['/livez', '/readyz'], everyMs = 200 } = {},
) {
  const seen = { refused: [] as string[], peakMiB: 0, durationsMs: [] as number[] };
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      for (const path of paths) {
        const from = performance.now();
        const status = await fetch(`${server.url}${path}`).then(
          (response) => response.status,
          (error) => String(error),
        );
        if (status !== 200) seen.refused.push(`${path}: ${status}`);
        seen.durationsMs.push(performance.now() - from);
      }
      seen.peakMiB = Math.max(seen.peakMiB, server.residentMiB() ?? 0);
      await sleep(everyMs);
    }
  })();
  const end = async () => {
    isOver = true;
    await watching;
    return { ...seen, slowestMs: Math.max(...seen.durationsMs) };
  };
  onTestFinished(() => void end());
  return { end, count: () => seen.durationsMs.length };
}
