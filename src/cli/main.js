#!/usr/bin/env -S node --max-semi-space-size=16
// @ts-check
// No TypeScript, as all the rest is: what strips types takes 80 ms to load, and isn't needed for what is in the cache.
//
// The first line bounds what the engine sets aside for young objects, in MiB: without it a million tracked submissions make it 128, which
// are never given back. Whoever starts a server in another way says so too: package.json, Dockerfile.
import module from 'node:module';
import v8 from 'node:v8';

const { node } = process.versions;
if (Number.parseInt(node, 10) < 24) {
  process.stderr.write(
    `dawatch needs Node 24, this is ${node}: after npm ci, npm scripts and npx use the one in node_modules\n`,
  );
  process.exit(1);
}
// Else the engine makes objects among those that stay once some of their kind outlived their youth, as requests under way do: nearly all
// garbage would lie there under load, which takes a third more CPU and 100 MB.
v8.setFlagsFromString('--no-allocation-site-pretenuring');
// Every command is a process of its own: what the last one compiled halves the time until the next one begins.
module.enableCompileCache();
// Whoever reads may go first, as `head` does; this is how a shell shows an end by SIGPIPE.
process.stdout.on('error', () => process.exit(141));

const { run } = await import('./program.ts');
const exitCode = await run(process.argv.slice(2));
if (exitCode !== undefined) process.exit(exitCode);
