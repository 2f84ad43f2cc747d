// Rejects files of src with more than 500 lines, and comments wider than the code.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import biome from '../biome.json' with { type: 'json' };

const MAX_LINES = 500;
/** Written by a program. */
const GENERATED = ['src/client/api.ts'];
const { lineWidth } = biome.formatter;
const COMMENT = /^\s*(?:\*|\/\/|\/\*)/;
/** Types of JSDoc, tables and addresses cannot be broken. */
const UNBREAKABLE = /^\s*\/?\*+ (?:@|\|)|https?:\/\//;

const listed = execFileSync('git', [
  'ls-files',
  '-co',
  '--exclude-standard',
  'src',
  'test',
  'bench',
  '.ci',
]);
const files = listed
  .toString()
  .split('\n')
  .filter((path) => /\.(?:ts|js|css)$/.test(path) && existsSync(path))
  .filter((path) => !GENERATED.includes(path));
const violations = files.flatMap((path) => {
  const lines = readFileSync(path, 'utf8').split('\n');
  const wide = lines.flatMap((line, index) =>
    line.length > lineWidth && COMMENT.test(line) && !UNBREAKABLE.test(line)
      ? `${path}:${index + 1}: the comment has ${line.length} characters, at most ${lineWidth} are allowed`
      : [],
  );
  if (!path.startsWith('src/') || lines.length - 1 <= MAX_LINES) return wide;
  return [...wide, `${path} has ${lines.length - 1} lines, at most ${MAX_LINES} are allowed`];
});
for (const violation of violations) console.error(violation);
if (violations.length > 0) process.exit(1);
if (files.length < 500) throw new Error(`only ${files.length} files were read`);
console.log(`sizes hold: ${files.length} files`);
