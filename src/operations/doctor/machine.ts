import { existsSync, readFileSync } from 'node:fs';
import { type Finding, ok, warning } from './finding.ts';

/** Each client connection and each receiver uses one descriptor. */
const MIN_OPEN_FILES = 4_096;

export function checkMachine(
  { nodeVersion, openFiles } = { nodeVersion: process.versions.node, openFiles: openFilesLimit() },
): Finding[] {
  // Every command refuses versions that are too old.
  const node = ok('node', `Node ${nodeVersion}`);
  if (openFiles === undefined) return [node];
  const files = `limit of ${openFiles} open files and connections`;
  const isFew = openFiles !== 'unlimited' && openFiles < MIN_OPEN_FILES;
  const advice = `raise the limit to at least ${MIN_OPEN_FILES}: ulimit -n, or LimitNOFILE of systemd`;
  return [node, isFew ? warning('open_files', files, advice) : ok('open_files', files)];
}

/** Returns the soft limit of open files, or undefined if the system does not report it. */
function openFilesLimit(): number | 'unlimited' | undefined {
  const file = '/proc/self/limits';
  const limits = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const soft = /^Max open files +(\d+|unlimited)/m.exec(limits)?.[1];
  return soft === undefined || soft === 'unlimited' ? soft : Number(soft);
}
