import type { TracerSettings } from '../operations/tracing/tracer.ts';
import type { createTraces } from './tracing.ts';

/** Returns undefined if tracing is off; its modules are then not loaded. */
export async function startTracing(
  settings: TracerSettings | undefined,
  deps: Omit<Parameters<typeof createTraces>[0], 'settings'>,
): Promise<ReturnType<typeof createTraces> | undefined> {
  if (settings === undefined) return undefined;
  const { createTraces: create } = await import('./tracing.ts');
  return create({ settings, ...deps });
}
