import { type LoadedConfig, loadConfig } from '../../src/operations/config/load.ts';
import type { UpstreamConfig } from '../../src/operations/config/schema.ts';
import { type DoctorOptions, runDoctor } from '../../src/operations/doctor/run-doctor.ts';
import { redisCheck } from '../../src/redis/doctor-redis.ts';

/** An upstream of the settings, with the defaults. */
export function upstreamOf(
  fields: Partial<UpstreamConfig> & { url: string },
): UpstreamConfig & { url: string } {
  return { ...loadConfig({ env: {}, file: null }).config.upstreams.default, ...fields };
}

/** Settings from environment variables only. */
export function settingsOf(env: Record<string, string>): LoadedConfig {
  return loadConfig({ env, file: null });
}

/** Returns every finding with these settings, by name. */
export async function findingsOf(loaded: LoadedConfig, fields: Partial<DoctorOptions> = {}) {
  const progress: Record<'started' | 'ended', string[]> = { started: [], ended: [] };
  const findings = await runDoctor({
    loaded,
    env: {},
    now: Date.now(),
    full: false,
    limitMs: 5_000,
    features: [redisCheck],
    onBegin: (names) => progress.started.push(...names),
    onEnded: (name) => progress.ended.push(name),
    ...fields,
  });
  return {
    findings,
    named: (name: string) => findings.filter((finding) => finding.name === name),
    progress,
  };
}
