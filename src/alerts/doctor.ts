import { reach } from '../notifications/doctor.ts';
import type { Check } from '../operations/doctor/finding.ts';
import type { AlertSettings } from './settings.ts';

/** Returns the check of the host of the heartbeat; undefined if none is configured. */
export function heartbeatCheck(
  { heartbeat: { url } }: AlertSettings,
  limitMs: number,
): Check | undefined {
  if (url === undefined) return undefined;
  const name = 'heartbeat';
  const action = 'verify that it runs, and verify heartbeat.url';
  return { name, run: () => reach(name, { url, limitMs, action }) };
}
