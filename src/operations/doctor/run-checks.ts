import { setMaxListeners } from 'node:events';
import { type Finding, problem, warning } from './finding.ts';

/**
 * An independent check. It is abandoned after `limitMs`; `run` should end when its signal aborts.
 */
export type Check = {
  name: string;
  limitMs: number;
  run(signal: AbortSignal): Finding[] | Promise<Finding[]>;
};

/**
 * Runs all checks concurrently and returns their findings in order. Never rejects and respects
 * every limit.
 */
export async function runChecks(
  checks: readonly Check[],
  onEnded: (name: string) => void,
): Promise<Finding[]> {
  const findings = await Promise.all(
    checks.map(async (check) => {
      const found = await runOne(check);
      onEnded(check.name);
      return found;
    }),
  );
  return findings.flat();
}

async function runOne({ name, limitMs, run }: Check): Promise<Finding[]> {
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding[]>((resolve) => {
    timer = setTimeout(() => {
      resolve([
        warning(name, `not completed within ${limitMs / 1_000} s`, 'try again under less load'),
      ]);
      over.abort();
    }, limitMs);
  });
  try {
    return await Promise.race([Promise.resolve().then(() => run(over.signal)), late]);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return [problem(name, `the check failed: ${message}`, 'report this defect of dawatch')];
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}
