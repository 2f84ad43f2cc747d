import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { MEMORY } from './memory.ts';

/**
 * Creates a folder for this test, removed when the test ends; in memory, if requested and
 * available.
 */
export function tempFolder({ inMemory = false } = {}): string {
  const parent = (inMemory ? MEMORY : undefined) ?? tmpdir();
  const folder = mkdtempSync(join(parent, 'dawatch-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
