// Builds the packages: the server and the command line into dist, the client and the pacing into
// dist of their folders. All are published compiled, because Node does not strip types below
// node_modules.
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { build } from 'rolldown';
import manifest from '../package.json' with { type: 'json' };

const tsc = (...args: string[]) =>
  execFileSync('tsc', args, { stdio: 'inherit', shell: process.platform === 'win32' });

rmSync('dist', { recursive: true, force: true });
// Finding and opening 350 modules takes a sixth of a start, so they are joined to fewer files.
// Dependencies stay as they are installed. Source maps would take half of the package; names
// and comments are kept, so that the code reads like its source.
await build({
  input: ['./src/cli/program.ts'],
  platform: 'node',
  external: [
    /^node:/,
    ...Object.keys(manifest.dependencies).map((name) => new RegExp(`^${name}(/|$)`)),
  ],
  transform: { target: 'es2023' },
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
// Browsers load the dashboard as it is.
cpSync('src/dashboard/page', 'dist/page', {
  recursive: true,
  filter: (path) => !/\.d\.ts$|tsconfig\.json$/.test(path),
});

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
