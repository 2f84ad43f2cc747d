import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import pkg from '../../package.json' with { type: 'json' };
import client from '../../src/client/package.json' with { type: 'json' };
import pacing from '../../src/pacing/package.json' with { type: 'json' };

type Step = {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
  env?: Record<string, string>;
};
type Job = {
  uses?: string;
  needs?: string | string[];
  permissions?: Record<string, string>;
  'timeout-minutes'?: number;
  steps?: Step[];
};
type Workflow = { on: Record<string, unknown>; permissions: object; jobs: Record<string, Job> };

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, '.github/workflows');
const FILES = readdirSync(FOLDER);
const textOf = (file: string) => readFileSync(join(FOLDER, file), 'utf8');
const workflow = (file: string) => parse(textOf(file)) as Workflow;

function stepsOf(file: string): Step[] {
  return Object.values(workflow(file).jobs).flatMap(({ steps }) => steps ?? []);
}

function job(file: string, name: string) {
  const found = workflow(file).jobs[name];
  if (!found) throw new Error(`${file} has no job ${name}`);
  const steps = found.steps ?? [];
  return { ...found, steps, commands: steps.map(({ run }) => run ?? '').join('\n') };
}

/** What each job may do. Without an entry, a new job fails the test. */
const PERMISSIONS: Record<string, Record<string, Record<string, string>>> = {
  'ci.yml': { test: { contents: 'read' }, image: { contents: 'read' } },
  'docs.yml': { build: { contents: 'read' }, publish: { pages: 'write', 'id-token': 'write' } },
  'release.yml': {
    test: { contents: 'read' },
    package: { contents: 'read' },
    npm: { 'id-token': 'write' },
    image: { contents: 'read', packages: 'write', 'id-token': 'write' },
    chart: { contents: 'read', packages: 'write', 'id-token': 'write' },
    github: { contents: 'write' },
  },
};

it('workflows are those with known permissions', () => {
  expect(FILES.toSorted()).toEqual(Object.keys(PERMISSIONS).toSorted());
});

describe.each(FILES)('%s', (file) => {
  it('runs scripts that exist', () => {
    const commands = stepsOf(file)
      .map(({ run }) => run ?? '')
      .join('\n');
    const scripts = [...commands.matchAll(/npm (?:run )?(test|(?<=run )[\w:-]+)/g)].map(
      ([, name]) => name,
    );
    expect(scripts.filter((name) => !Object.hasOwn(pkg.scripts, name ?? ''))).toEqual([]);
    const files = [...commands.matchAll(/\.ci\/[\w.-]+/g)].map(([path]) => path);
    expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(scripts.length + files.length).toBeGreaterThan(0);
  });

  it('gives each job only the permissions that it needs', () => {
    const { permissions, jobs } = workflow(file);
    expect(permissions).toEqual({});
    expect(
      Object.fromEntries(
        Object.entries(jobs).map(([name, { permissions }]) => [name, permissions]),
      ),
    ).toEqual(PERMISSIONS[file]);
  });

  it('uses actions by the hash of a commit, with the version in a comment', () => {
    const uses = textOf(file).matchAll(/uses: (.*)/g);
    for (const [, action = ''] of uses)
      expect(action).toMatch(
        /^(?:\.\/\.github\/workflows\/ci\.yml|[\w-]+\/[\w-]+@[\da-f]{40} # v\d+\.\d+\.\d+)$/,
      );
  });

  it('keeps no credentials in a checkout, and reads no stored secret', () => {
    const checkouts = stepsOf(file).filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    expect(checkouts.map((step) => step.with?.['persist-credentials'])).toEqual(
      checkouts.map(() => false),
    );
    expect(textOf(file)).not.toContain('secrets.');
  });

  it('passes values to commands only through the environment', () => {
    expect(stepsOf(file).filter(({ run }) => run?.includes('${{'))).toEqual([]);
  });
});

it('CI runs .ci/run for every push and pull request', () => {
  expect(workflow('ci.yml').on).toEqual({
    push: { branches: ['**'] },
    pull_request: null,
    workflow_call: null,
  });
  expect(job('ci.yml', 'test').commands.trim()).toBe('.ci/run');
  expect(() => accessSync(join(ROOT, '.ci/run'), constants.X_OK)).not.toThrow();
});

it('publishes the documents of main as the link check accepts them', () => {
  expect(workflow('docs.yml').on).toMatchObject({ push: { branches: ['main'] } });
  expect(job('docs.yml', 'build').commands).toContain('npm run docs:build');
  expect(pkg.scripts['docs:build']).toMatch(/&& node .ci\/site\/check-links.ts$/);
  expect(job('docs.yml', 'publish')).toMatchObject({ needs: 'build', commands: '' });
});

describe('a release', () => {
  it('starts with a tag of npm run release, and publishes nothing before the tests have passed', () => {
    expect(workflow('release.yml').on).toEqual({ push: { tags: ['v*'] } });
    expect(job('release.yml', 'test').uses).toBe('./.github/workflows/ci.yml');
    expect(job('release.yml', 'npm').needs).toEqual(['test', 'package']);
    expect(job('release.yml', 'image').needs).toEqual(['test', 'package']);
    expect(job('release.yml', 'chart').needs).toEqual(['image']);
    expect(job('release.yml', 'github').needs).toEqual(['npm', 'chart']);
    expect(job('release.yml', 'package').commands).toContain(
      `test "v$(npm pkg get version | tr -d '"')" = "$GITHUB_REF_NAME"`,
    );
  });

  it('publishes the packages that npm run package creates, with their provenance', () => {
    expect(pkg.scripts.package).toContain('npm pack ./dist ./src/client ./src/pacing');
    const packing = job('release.yml', 'package');
    expect(packing.commands).toContain('npm run package');
    const upload = packing.steps.find(({ uses }) =>
      uses?.startsWith('actions/upload-artifact@'),
    )?.with;
    expect(String(upload?.path).split('\n')).toContain('*.tgz');
    const publishing = job('release.yml', 'npm');
    expect(
      publishing.steps.find(({ uses }) => uses?.startsWith('actions/download-artifact@'))?.with
        ?.name,
    ).toBe(upload?.name);
    const published = publishing.commands.match(/npm publish .*/g)?.toSorted();
    const tarballs = [client, pacing, pkg].map(
      ({ name }) => `./${name.replace('@', '').replace('/', '-')}-$version.tgz`,
    );
    expect(published).toEqual(
      tarballs
        .map((tarball) => `npm publish "${tarball}" --provenance --access public --tag "$DIST_TAG"`)
        .toSorted(),
    );
  });

  it('runs no code of dependencies in a job that may publish', () => {
    for (const name of ['npm', 'image', 'chart', 'github'])
      expect(job('release.yml', name).commands).not.toMatch(/npm (?:ci|install|run|exec)|npx/);
  });
});
