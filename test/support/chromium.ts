import { execFileSync } from 'node:child_process';
import { type Browser, chromium } from 'playwright-core';

/** Where Debian's chromium is; undefined: there is none on this machine. */
export function findChromium(): string | undefined {
  try {
    return execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim();
  } catch {
    return undefined;
  }
}

/** Headless. The caller closes it. */
export function openChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error('no chromium on the PATH: apt-get install chromium');
  // Its own sandbox needs a user that is not root.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args });
}
