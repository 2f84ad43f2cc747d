import { setMaxListeners } from 'node:events';
import { type Finding, problem, warning } from './finding.ts';

/** One thing to look at, by itself. What has not come to an end by `limitMs` is given up; `run` should end with its signal. */
export type Check = {
  name: string;
  limitMs: number;
  run(signal: AbortSignal): Finding[] | Promise<Finding[]>;
};

/** Runs all of them at once; their findings come in the order of the checks. Never rejects, and outlasts no limit. */
export async function runChecks(checks: readonly Check[], onEnded: (name: string) => void): Promise<Finding[]> {
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
      resolve([warning(name, `not done within ${limitMs / 1_000} s`, 'look again when there is less to do here')]);
      over.abort();
    }, limitMs);
  });
  try {
    return await Promise.race([Promise.resolve().then(() => run(over.signal)), late]);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return [problem(name, `can't be examined: ${said}`, 'this is a fault of dawatch: please report it')];
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}
