import { runProcess } from './run-process.ts';
import type { Result, Settings } from './simulate.ts';
import { ACTIONS, FAULTS } from './world/faults.ts';

/**
 * Returns a failing run with fewer days and fewer kinds of faults, which fails too, and its result.
 */
export async function shrink(
  settings: Settings,
  result: Result,
): Promise<{ settings: Settings; result: Result }> {
  let smallest = { settings, result };
  const attempt = async (changed: Partial<Settings>) => {
    const candidate = { ...smallest.settings, ...changed };
    const tried = await runProcess(candidate);
    if (tried.defects.length > 0) smallest = { settings: candidate, result: tried };
  };
  const shorter = async () => {
    // Hundredths of days, so that the command is short.
    const days = Math.ceil(smallest.result.days * 100) / 100;
    if (days < smallest.settings.days) await attempt({ days });
  };
  await shorter();
  for (const kind of [...FAULTS, ...ACTIONS])
    if (!smallest.settings.without.has(kind))
      await attempt({ without: new Set([...smallest.settings.without, kind]) });
  await shorter();
  return smallest;
}
