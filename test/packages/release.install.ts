import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { parse } from 'yaml';
import pkg from '../../package.json' with { type: 'json' };
import lockfile from '../../package-lock.json' with { type: 'json' };
import { cloneBelow, runInShell } from './support/clone.ts';
import { removedAfterTests } from './support/folders.ts';
import { NEWEST_NODE } from './support/pack.ts';

const { npmCli, nodes } = inject('packages');
const ROOT = join(import.meta.dirname, '../..');
const { jobs } = parse(readFileSync(join(ROOT, '.github/workflows/release.yml'), 'utf8')) as {
  jobs: { package: { steps: { run?: string }[] } };
};

describe('the packages that the release workflow makes', () => {
  const folder = removedAfterTests();
  let clone = '';
  beforeAll(async () => {
    clone = cloneBelow(folder);
    symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'));
    const env = {
      GITHUB_SERVER_URL: 'https://forge.example',
      GITHUB_REPOSITORY: 'owner/name',
      GITHUB_REF_NAME: `v${pkg.version}`,
    };
    for (const { run } of jobs.package.steps)
      if (run && run !== 'npm ci')
        await runInShell(run, { cwd: clone, nodePath: nodes[NEWEST_NODE] as string, npmCli, env });
  }, 600_000);

  it.each([
    ['dawatch', `dawatch-${pkg.version}.tgz`],
    ['@dawatch/client', `dawatch-client-${pkg.version}.tgz`],
    ['@dawatch/pacing', `dawatch-pacing-${pkg.version}.tgz`],
  ])(
    '%s names its version and the repository, which the registry compares with the provenance',
    (name, file) => {
      const options = { cwd: clone, encoding: 'utf8' } as const;
      const manifest = JSON.parse(
        execFileSync('tar', ['-xzOf', file, 'package/package.json'], options),
      );
      expect(manifest).toMatchObject({
        name,
        version: pkg.version,
        repository: { type: 'git', url: 'git+https://forge.example/owner/name.git' },
        homepage: 'https://forge.example/owner/name#readme',
        bugs: { url: 'https://forge.example/owner/name/issues' },
        keywords: expect.arrayContaining([expect.any(String)]),
      });
    },
  );

  it('have an SBOM in CycloneDX of exactly the production dependencies in the lockfile', () => {
    const sbom = JSON.parse(readFileSync(join(clone, 'dawatch-sbom.cdx.json'), 'utf8'));
    expect(sbom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.5', version: 1 });
    expect(sbom.serialNumber).toMatch(/^urn:uuid:[\da-f-]{36}$/);
    const { purl, type, version } = sbom.metadata.component;
    expect({ purl, type, version }).toEqual({
      purl: `pkg:npm/dawatch@${pkg.version}`,
      type: 'application',
      version: pkg.version,
    });
    type Component = {
      name: string;
      version: string;
      purl: string;
      hashes: { alg: string }[];
      licenses: object[];
    };
    const components: Component[] = sbom.components;
    expect(components.map(({ name, version }) => `${name} ${version}`).toSorted()).toEqual(
      productionPackages(),
    );
    for (const { name, hashes, licenses } of components) {
      expect(hashes[0]?.alg, name).toBe('SHA-512');
      expect(licenses.length, name).toBeGreaterThan(0);
    }
  });
});

type Locked = {
  version?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
};

/**
 * Returns the name and version of every package that an installation for production may contain,
 * read from the lockfile.
 */
function productionPackages(): string[] {
  const packages = lockfile.packages as Record<string, Locked>;
  const reached = new Set<string>();
  const visit = (from: string, { dependencies, optionalDependencies, ...peers }: Locked) => {
    const needed = Object.keys(peers.peerDependencies ?? {}).filter(
      (name) => !peers.peerDependenciesMeta?.[name]?.optional,
    );
    for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...needed]) {
      let folder = from;
      let path = join(folder, 'node_modules', name);
      while (!packages[path] && folder !== '') {
        folder = folder.replace(/(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/, '');
        path = join(folder, 'node_modules', name);
      }
      const found = packages[path];
      if (!found || reached.has(path)) continue;
      reached.add(path);
      visit(path, found);
    }
  };
  visit('', { dependencies: pkg.dependencies });
  const named = [...reached].map(
    (path) => `${path.replace(/^.*node_modules\//, '')} ${packages[path]?.version}`,
  );
  // The same version may be in several places.
  return [...new Set(named)].toSorted();
}
