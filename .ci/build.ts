// Builds the packages: the server and the command line into dist, which is the folder that is
// packed, the client and the pacing into dist of their folders. All are published compiled, because
// Node does not strip types below node_modules.
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'rolldown';
import manifest from '../package.json' with { type: 'json' };
import { LIBRARIES, libraryFile } from '../src/dashboard/assets.ts';

const tsc = (...args: string[]) =>
  execFileSync('tsc', args, { stdio: 'inherit', shell: process.platform === 'win32' });

rmSync('dist', { recursive: true, force: true });
// A few files instead of 130 packages install and start faster. The package with native modules
// stays a dependency. Source maps would take half of the package; names and comments are kept, so
// that the code reads like its source.
const { output } = await build({
  input: ['./src/cli/program.ts'],
  platform: 'node',
  external: [/^node:/, 'better-sqlite3'],
  transform: {
    target: 'es2023',
    // Of CommonJS.
    define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
  },
  output: {
    dir: 'dist',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    keepNames: true,
    // A server that runs while a new version is installed may still load a file. With short names,
    // it would find other functions by the same ones.
    minifyInternalExports: false,
  },
});
cpSync('src/cli/main.js', 'dist/main.js');
for (const path of ['config', 'deploy/host', 'README.md', 'LICENSE'])
  cpSync(path, join('dist', path), { recursive: true });
// Browsers load the dashboard as it is.
cpSync('src/dashboard/page', 'dist/page', {
  recursive: true,
  filter: (path) => !/\.d\.ts$|tsconfig\.json$/.test(path),
});
const libraries = Object.keys(LIBRARIES) as (keyof typeof LIBRARIES)[];
for (const name of libraries) cpSync(libraryFile(name), join('dist/page/lib', name));

const { scripts, workspaces, devDependencies, overrides, private: _, ...published } = manifest;
const contents = {
  ...published,
  bin: { dawatch: 'main.js' },
  dependencies: { 'better-sqlite3': manifest.dependencies['better-sqlite3'] },
};
writeFileSync('dist/package.json', `${JSON.stringify(contents, null, 2)}\n`);

const bundled = [
  ...output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : [])),
  ...libraries.map(libraryFile),
];
const packages = new Set(
  bundled.flatMap((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []),
);
const licenses = [...packages].map(licenseOf);
writeFileSync('dist/THIRD-PARTY-LICENSES', licenses.toSorted().join('\n'));

/** Returns the name, version and license of the package in a folder. */
function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const [file] = globSync('{LICENSE,LICENCE,license,License}*', { cwd: folder });
  const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8');
  // The browser build in this package names no license.
  const contained = name === '@fastify/swagger-ui' ? '\nswagger-ui 5: Apache-2.0\n' : '';
  return `${'-'.repeat(80)}\n${name} ${version}: ${license}\n\n${text}${contained}`;
}

rmSync('src/client/dist', { recursive: true, force: true });
tsc('-p', '.ci/tsconfig.client.json');
const commonJs = [
  '--module',
  'commonjs',
  '--moduleResolution',
  'bundler',
  '--verbatimModuleSyntax',
  'false',
];
tsc('-p', '.ci/tsconfig.client.json', ...commonJs, '--outDir', 'src/client/dist/cjs');
writeFileSync('src/client/dist/cjs/package.json', '{ "type": "commonjs" }\n');
// The types are the same for both kinds of modules, and ES modules may import those of CommonJS.
writeFileSync('src/client/dist/esm/api.d.ts', "export type * from '../cjs/api.js';\n");

rmSync('src/pacing/dist', { recursive: true, force: true });
tsc('-p', '.ci/tsconfig.pacing.json');
