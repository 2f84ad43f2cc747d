import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { MIGRATIONS } from '../../src/ledger/schema.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const CHART = 'deploy/helm/dawatch/Chart.yaml';
const MANIFESTS = ['package.json', 'src/client/package.json', 'src/pacing/package.json'];
const FILES = [...MANIFESTS, 'package-lock.json', CHART];
const EARLIER = 'test/ledger/earlier';
const DUMP = `${EARLIER}/schema-${MIGRATIONS.length}.sql`;
const CHANGELOG = `# Changelog

Format.

## [Unreleased]

### Added
- A thing.

## [0.9.0] - 2026-01-02

### Fixed
- An old thing.
`;

let template = '';
beforeAll(() => {
  const origin = join(mkdtempSync(join(tmpdir(), 'dawatch-release-')), 'origin');
  for (const file of FILES) {
    mkdirSync(dirname(join(origin, file)), { recursive: true });
    cpSync(join(ROOT, file), join(origin, file));
  }
  writeFileSync(join(origin, 'CHANGELOG.md'), CHANGELOG);
  mkdirSync(join(origin, EARLIER), { recursive: true });
  writeFileSync(join(origin, DUMP), '');
  git(origin, 'init', '--quiet', '--initial-branch=main');
  git(origin, 'add', '--all');
  git(origin, 'commit', '--quiet', '-m', 'Begin');
  template = origin;
});
afterAll(() => rmSync(dirname(template), { recursive: true }));

/** A repository with the manifests of this one and a short changelog, on the branch main. */
function cloned() {
  const folder = join(tempFolder(), 'clone');
  cpSync(template, folder, { recursive: true });
  return {
    folder,
    git: (...args: string[]) => git(folder, ...args),
    read: (file: string) => readFileSync(join(folder, file), 'utf8'),
    run: (script: string, ...args: string[]) =>
      spawnSync(process.execPath, [join(ROOT, '.ci/release', script), ...args], {
        cwd: folder,
        encoding: 'utf8',
        env: GIT_ENV,
      }),
  };
}

/** Independent of the settings of the user and of hooks, which run tests with GIT_DIR set. */
const GIT_ENV = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'))),
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Author',
  GIT_AUTHOR_EMAIL: 'author@example.com',
  GIT_COMMITTER_NAME: 'Author',
  GIT_COMMITTER_EMAIL: 'author@example.com',
};

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd, encoding: 'utf8', env: GIT_ENV }).trim();
}

describe('npm run release', () => {
  it('commits the version of all packages, the chart and the changelog, and tags the commit', () => {
    const clone = cloned();
    const { status, stdout } = clone.run('release.ts', '1.2.3');
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: 'Committed and tagged v1.2.3. Publish it: git push --atomic origin main v1.2.3\n',
    });
    expect(clone.git('status', '--porcelain')).toBe('');
    expect(clone.git('log', '-1', '--format=%s')).toBe('Release 1.2.3');
    expect(clone.git('cat-file', '-t', 'v1.2.3')).toBe('tag');
    expect(clone.git('rev-parse', 'v1.2.3^{commit}')).toBe(clone.git('rev-parse', 'HEAD'));
    const lockfile = JSON.parse(clone.read('package-lock.json'));
    const versions = [
      lockfile,
      ...['', 'src/client', 'src/pacing'].map((folder) => lockfile.packages[folder]),
    ];
    for (const file of MANIFESTS) versions.push(JSON.parse(clone.read(file)));
    expect(versions.map(({ version }) => version)).toEqual(Array(7).fill('1.2.3'));
    expect(parse(clone.read(CHART))).toMatchObject({ version: '1.2.3', appVersion: '1.2.3' });
    expect(clone.git('diff', '--numstat', 'HEAD~1').split('\n').toSorted()).toEqual(
      [
        '2\t0\tCHANGELOG.md',
        `2\t2\t${CHART}`,
        '4\t4\tpackage-lock.json',
        ...MANIFESTS.map((file) => `1\t1\t${file}`),
      ].toSorted(),
    );
  });

  it('moves the unreleased changes below the version and the date, and prints them as release notes', () => {
    const clone = cloned();
    const before = new Date().toISOString().slice(0, 10);
    clone.run('release.ts', '1.2.3-rc.1');
    const dates = [before, new Date().toISOString().slice(0, 10)];
    expect(
      dates.map((date) =>
        CHANGELOG.replace('[Unreleased]', `[Unreleased]\n\n## [1.2.3-rc.1] - ${date}`),
      ),
    ).toContain(clone.read('CHANGELOG.md'));
    expect(clone.run('release-notes.ts', '1.2.3-rc.1').stdout).toBe('### Added\n- A thing.\n');
    expect(clone.run('release-notes.ts', '0.9.0').stdout).toBe('### Fixed\n- An old thing.\n');
    expect(clone.run('release-notes.ts', '1.2.3')).toMatchObject({ status: 1, stdout: '' });
  });

  it.each<[string, string, (clone: ReturnType<typeof cloned>) => void, RegExp]>([
    ['no version', '', () => undefined, /"" is not a version/],
    ['a version with a v', 'v1.2.3', () => undefined, /"v1.2.3" is not a version/],
    [
      'another branch',
      '1.2.3',
      ({ git }) => git('switch', '--quiet', '--create', 'topic'),
      /on main, not on topic/,
    ],
    [
      'a changed file',
      '1.2.3',
      ({ folder }) => appendFileSync(join(folder, 'package.json'), '\n'),
      /has changes/,
    ],
    ['an existing tag', '1.2.3', ({ git }) => git('tag', 'v1.2.3'), /the tag v1.2.3 exists/],
    ['a version in the changelog', '0.9.0', () => undefined, /CHANGELOG.md has a section 0.9.0/],
  ])('refuses %s and changes nothing', (_name, version, prepare, reason) => {
    const clone = cloned();
    prepare(clone);
    expectRefusal(clone, version, reason);
  });

  it('refuses a schema without the dump of a ledger, with which later versions are tested', () => {
    const clone = cloned();
    clone.git('rm', '--quiet', DUMP);
    clone.git('commit', '--quiet', '-m', 'Remove the dump');
    expectRefusal(clone, '1.2.3', /schema-\d+\.sql is missing/);
  });

  it('names the repository in the packages, and gives the README links that work outside it', () => {
    const clone = cloned();
    const readme = '[a](docs/a.md), ![b](docs/b.png), [c](https://c.example/d), [e](#e)';
    writeFileSync(join(clone.folder, 'README.md'), readme);
    const run = clone.run('name-repository.ts', 'https://forge.example/owner/name', 'v1.2.3');
    expect(run).toMatchObject({ status: 0, stderr: '' });
    const files = 'https://forge.example/owner/name/blob/v1.2.3/docs';
    expect(clone.read('README.md')).toBe(
      `[a](${files}/a.md), ![b](${files}/b.png?raw=true), [c](https://c.example/d), [e](#e)`,
    );
    const url = 'git+https://forge.example/owner/name.git';
    for (const file of MANIFESTS)
      expect(JSON.parse(clone.read(file)), file).toMatchObject({
        repository: { type: 'git', url },
        homepage: 'https://forge.example/owner/name#readme',
        bugs: { url: 'https://forge.example/owner/name/issues' },
        keywords: expect.arrayContaining([expect.any(String)]),
      });
  });

  it('prints release notes whose links work outside the repository', () => {
    const links = '- See [a](docs/a.md#part), [b](https://b.example/c), [d](#d).';
    const clone = cloned();
    writeFileSync(join(clone.folder, 'CHANGELOG.md'), CHANGELOG.replace('- An old thing.', links));
    const { stdout } = clone.run('release-notes.ts', '0.9.0', 'https://forge.example/files');
    expect(stdout).toContain(
      '- See [a](https://forge.example/files/docs/a.md#part), [b](https://b.example/c), [d](#d).',
    );
  });
});

function expectRefusal(clone: ReturnType<typeof cloned>, version: string, reason: RegExp): void {
  const state = () => [
    clone.git('for-each-ref'),
    clone.git('diff', 'HEAD'),
    clone.git('status', '--branch', '--porcelain'),
  ];
  const before = state();
  const { status, stderr } = clone.run('release.ts', version);
  expect(status).toBe(1);
  expect(stderr).toMatch(/^No release: /);
  expect(stderr).toMatch(reason);
  expect(state()).toEqual(before);
}
