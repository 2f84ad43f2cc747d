import type { TracerSettings } from '../platform/tracing/tracer.ts';
import type { connectTracing } from './tracing.ts';

/** Returns undefined if tracing is off, as on most servers, which then do not load it. */
export async function startTracing(
  settings: TracerSettings | undefined,
  deps: Omit<Parameters<typeof connectTracing>[0], 'settings'>,
): Promise<ReturnType<typeof connectTracing> | undefined> {
  if (settings === undefined) return undefined;
  const { connectTracing: connect } = await import('./tracing.ts');
  return connect({ settings, ...deps });
}
