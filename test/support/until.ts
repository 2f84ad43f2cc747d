import { vi } from 'vitest';
import { STEP_MS } from './patience.ts';

const PATIENCE = { timeout: STEP_MS, interval: 20 };

/** The result of the check, as soon as it does not throw. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, PATIENCE);
}

/** The result of the condition, as soon as it is truthy. */
export async function until<T>(condition: () => T | Promise<T>): Promise<T> {
  return (await vi.waitUntil(condition, PATIENCE)) as T;
}
