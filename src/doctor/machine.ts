import { existsSync, readFileSync } from 'node:fs';
import { type Finding, ok, warning } from './finding.ts';

const TESTED_NODE = 24;
/** Each caller, reader of the feed and receiver takes one. */
const ENOUGH_FILES = 4_096;

export function checkMachine(
  { nodeVersion, openFiles } = { nodeVersion: process.versions.node, openFiles: openFilesLimit() },
): Finding[] {
  const isOld = Number.parseInt(nodeVersion, 10) < TESTED_NODE;
  const node = isOld
    ? warning(
        'node',
        `Node ${nodeVersion} runs this`,
        `take Node ${TESTED_NODE}, which dawatch is tested with: npm ci brings it`,
      )
    : ok('node', `Node ${nodeVersion}`);
  if (openFiles === undefined) return [node];
  const files = `${openFiles} files and connections may be open at once`;
  const isFew = openFiles !== 'unlimited' && openFiles < ENOUGH_FILES;
  return [
    node,
    isFew
      ? warning(
          'open_files',
          files,
          `raise the limit to ${ENOUGH_FILES} at least: ulimit -n, or LimitNOFILE of systemd`,
        )
      : ok('open_files', files),
  ];
}

/** Undefined: this system does not say. */
function openFilesLimit(): number | 'unlimited' | undefined {
  const file = '/proc/self/limits';
  const limits = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const soft = /^Max open files +(\d+|unlimited)/m.exec(limits)?.[1];
  return soft === undefined || soft === 'unlimited' ? soft : Number(soft);
}
