// Rejects folders with more than 15 files of their own, and files of src with more than 300 lines.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const MAX_FILES = 15;
const MAX_LINES = 300;
/** Built, installed or generated. */
const IGNORED = /(?:^|\/)(?:dist|node_modules)(?:\/|$)/;

const violations: string[] = [];
let folders = 0;
for (const root of ['src', 'test', 'bench', '.ci']) {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !IGNORED.test(entry.parentPath));
  const byFolder = Map.groupBy(files, ({ parentPath }) => parentPath);
  folders += byFolder.size;
  for (const [folder, own] of byFolder)
    if (own.length > MAX_FILES) violations.push(`${folder} has ${own.length} files, at most ${MAX_FILES} are allowed`);
  if (root !== 'src') continue;
  for (const { parentPath, name } of files) {
    if (!/\.(?:ts|js|css)$/.test(name)) continue;
    const lines = readFileSync(join(parentPath, name), 'utf8').split('\n').length - 1;
    if (lines > MAX_LINES)
      violations.push(`${join(parentPath, name)} has ${lines} lines, at most ${MAX_LINES} are allowed`);
  }
}
for (const violation of violations) console.error(violation);
if (violations.length > 0) process.exit(1);
if (folders < 50) throw new Error(`only ${folders} folders were read`);
console.log(`size rules hold: ${folders} folders`);
