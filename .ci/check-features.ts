// Checks that the optional features can be deleted, each alone and all together: in a copy of the
// repository without their folders, their sections of the settings and their lines in the lists
// below, the rest compiles. Without all of them, or those that `npm run check:features -- alerts`
// names, the tests of two other folders pass, too.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseDocument } from 'yaml';

const SETTINGS = 'src/wiring/settings.ts';
const FEATURES = ['alerts', 'redis'];
/** A feature has one import or one entry in each of them, or none. */
const LISTS = [
  'src/wiring/features.ts',
  SETTINGS,
  'src/cli/program.ts',
  'src/cli/doctor-command.ts',
];
const TESTED = ['test/submissions', 'test/polling'];

const TYPES = ['tsc', '-p', 'tsconfig.rest.json'];
const TESTS = ['vitest', 'run', '--reporter=dot', ...TESTED];

const requested = process.argv.slice(2);
const alone = requested.length > 0 ? [] : FEATURES;
if (
  !passesWithout(requested.length > 0 ? requested : FEATURES, TYPES, TESTS) ||
  !alone.every((feature) => passesWithout([feature], TYPES))
)
  process.exit(1);

function passesWithout(features: readonly string[], ...commands: string[][]): boolean {
  const copy = mkdtempSync(join(tmpdir(), 'dawatch-without-'));
  try {
    copyTo(copy);
    for (const feature of features) deleteFrom(copy, feature);
    const settings = { extends: './tsconfig.json', include: ['src', ...TESTED] };
    writeFileSync(join(copy, 'tsconfig.rest.json'), JSON.stringify(settings));
    return commands.every((command) => succeeds(copy, features, command));
  } finally {
    rmSync(copy, { recursive: true });
  }
}

function deleteFrom(copy: string, feature: string): void {
  for (const folder of ['src', 'test']) rmSync(join(copy, folder, feature), { recursive: true });
  deleteSettings(copy, feature);
  for (const list of LISTS) {
    const path = join(copy, list);
    writeFileSync(path, withoutFeature(readFileSync(path, 'utf8'), feature));
  }
}

/** Copies all files that are not ignored. */
function copyTo(folder: string): void {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const files = execFileSync('git', args, { encoding: 'utf8' }).split('\0');
  for (const file of files) if (file !== '' && existsSync(file)) cpSync(file, join(folder, file));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
}

/** Deletes the sections of config/dawatch.yaml that the feature declares. */
function deleteSettings(copy: string, feature: string): void {
  const text = readFileSync(join(copy, SETTINGS), 'utf8');
  const rest = withoutFeature(text, feature).split('\n');
  const path = join(copy, 'config/dawatch.yaml');
  const settings = parseDocument(readFileSync(path, 'utf8'));
  for (const line of text.split('\n'))
    if (!rest.includes(line)) settings.delete(/^ {2}(\w+): /.exec(line)?.[1]);
  writeFileSync(path, settings.toString());
}

/** Removes the lines that import the feature, and those that use a name of such an import. */
function withoutFeature(text: string, feature: string): string {
  const lines = text.split('\n');
  const imports = lines.filter((line) => line.includes(`'../${feature}/`));
  const names = imports.flatMap((line) => /^import \{(.*)\}/.exec(line)?.[1]?.match(/\w+/g) ?? []);
  const uses = (line: string) => names.some((name) => new RegExp(`\\b${name}\\b`).test(line));
  return lines.filter((line) => !imports.includes(line) && !uses(line)).join('\n');
}

function succeeds(cwd: string, features: readonly string[], command: readonly string[]): boolean {
  const { status, stdout, stderr } = spawnSync('npx', command, { cwd, encoding: 'utf8' });
  console.log(
    `without ${features.join(' and ')}: ${command[0]} ${status === 0 ? 'passes' : `fails\n${stdout}${stderr}`}`,
  );
  return status === 0;
}
