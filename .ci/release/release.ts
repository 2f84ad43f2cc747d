// npm run release -- <version>: sets the version of all packages and of the Helm chart, gives the
// changelog's section its version and date, commits and tags. Changes nothing if a condition is not
// met. Pushing the tag starts .github/workflows/release.yml.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { MIGRATIONS } from '../../src/ledger/schema.ts';
import { listsChanges, releaseSection, sectionOf } from './changelog.ts';

/** https://semver.org, without build metadata, which npm ignores. */
const VERSION =
  /^(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}(?:-(?:0|[1-9]\d*|\d*[a-z-][\da-z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-z-][\da-z-]*))*)?$/i;
const MANIFESTS = ['package.json', 'src/client/package.json', 'src/pacing/package.json'];
const CHART = 'deploy/helm/dawatch/Chart.yaml';
const LOCKFILE = 'package-lock.json';
const CHANGELOG = 'CHANGELOG.md';

type Manifest = { version: string };

const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();

/** Returns the reason why the version cannot be released; undefined if it can be. */
function obstacle(version: string, changelog: string): string | undefined {
  if (!VERSION.test(version))
    return `"${version}" is not a version such as 1.2.3 or 1.2.3-rc.1: npm run release -- <version>`;
  const branch = git('branch', '--show-current');
  if (branch !== 'main')
    return `releases are made on main, not on ${branch || 'a detached commit'}`;
  if (git('status', '--porcelain') !== '')
    return 'the working tree has changes: commit or remove them';
  if (git('tag', '--list', `v${version}`) !== '') return `the tag v${version} exists`;
  if (sectionOf(changelog, version) !== undefined) return `${CHANGELOG} has a section ${version}`;
  const dump = `test/ledger/earlier/schema-${MIGRATIONS.length}.sql`;
  if (!existsSync(dump))
    return `${dump} is missing: the dump of a ledger of this version (see migrations.test.ts)`;
  if (!listsChanges(sectionOf(changelog, 'Unreleased') ?? ''))
    return `the section Unreleased of ${CHANGELOG} is empty`;
  return undefined;
}

function editJson<Content>(file: string, edit: (content: Content) => void): void {
  const content = JSON.parse(readFileSync(file, 'utf8')) as Content;
  edit(content);
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
}

function release(version: string, changelog: string): void {
  for (const file of MANIFESTS)
    editJson<Manifest>(file, (manifest) => {
      manifest.version = version;
    });
  editJson<Manifest & { packages: Record<string, Manifest> }>(LOCKFILE, (lockfile) => {
    for (const folder of ['', 'src/client', 'src/pacing']) {
      const manifest = lockfile.packages[folder];
      if (manifest) manifest.version = version;
    }
    lockfile.version = version;
  });
  // The version of the chart, and that of dawatch in it.
  writeFileSync(
    CHART,
    readFileSync(CHART, 'utf8').replaceAll(/^(version|appVersion): .*$/gm, `$1: ${version}`),
  );
  writeFileSync(
    CHANGELOG,
    releaseSection(changelog, version, new Date().toISOString().slice(0, 10)),
  );
  git(
    'commit',
    '--quiet',
    '-m',
    `Release ${version}`,
    '--',
    ...MANIFESTS,
    LOCKFILE,
    CHART,
    CHANGELOG,
  );
  git('tag', '--annotate', '-m', `dawatch ${version}`, `v${version}`);
}

const [version = ''] = process.argv.slice(2);
const changelog = readFileSync(CHANGELOG, 'utf8');
const reason = obstacle(version, changelog);
if (reason !== undefined) {
  console.error(`No release: ${reason}`);
  process.exit(1);
}
release(version, changelog);
console.log(
  `Committed and tagged v${version}. Publish it: git push --atomic origin main v${version}`,
);
