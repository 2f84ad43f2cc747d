import { execFileSync } from 'node:child_process';
import { type Browser, chromium } from 'playwright-core';

/** Returns the path of Debian's Chromium; undefined if it is not installed. */
export function findChromium(): string | undefined {
  try {
    return execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim();
  } catch {
    return undefined;
  }
}

/** Opens a headless browser. The caller closes it. */
export function openChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error('no chromium on the PATH: apt-get install chromium');
  // The sandbox of Chromium requires a user other than root.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args });
}
