// Rejects files of src with more than 500 lines.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const MAX_LINES = 500;
/** Built or installed. */
const IGNORED = /(?:^|\/)(?:dist|node_modules)(?:\/|$)/;

const files = readdirSync('src', { recursive: true, withFileTypes: true }).filter(
  (entry) => entry.isFile() && /\.(?:ts|js|css)$/.test(entry.name) && !IGNORED.test(entry.parentPath),
);
const tooLong = files.flatMap(({ parentPath, name }) => {
  const path = join(parentPath, name);
  const lines = readFileSync(path, 'utf8').split('\n').length - 1;
  return lines > MAX_LINES ? `${path} has ${lines} lines, at most ${MAX_LINES} are allowed` : [];
});
for (const violation of tooLong) console.error(violation);
if (tooLong.length > 0) process.exit(1);
if (files.length < 100) throw new Error(`only ${files.length} files were read`);
console.log(`no file has more than ${MAX_LINES} lines: ${files.length} files`);
