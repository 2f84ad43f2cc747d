import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { MEMORY } from './memory.ts';

/** A folder of this test's own, gone when the test ends; on a file system in memory, if there is one and it is asked for. */
export function tempFolder({ inMemory = false } = {}): string {
  const parent = (inMemory ? MEMORY : undefined) ?? tmpdir();
  const folder = mkdtempSync(join(parent, 'dawatch-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
