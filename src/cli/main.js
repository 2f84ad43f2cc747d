#!/usr/bin/env node
// @ts-check
// No TypeScript, as all the rest is: what strips types takes 80 ms to load, and isn't needed for what is in the cache.
import module from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import v8 from 'node:v8';

const { node } = process.versions;
if (Number.parseInt(node, 10) < 24) {
  process.stderr.write(
    `dawatch needs Node 24 or newer, this is ${node}. On Linux with glibc (x64, arm64), npm ci installs one, which npm scripts and npx use; on other systems, install one yourself\n`,
  );
  process.exit(1);
}
// Otherwise V8 makes the objects of requests among those that stay, once some have outlived their youth. Under load nearly all garbage
// would then lie there: a third more CPU, 100 MB more.
v8.setFlagsFromString('--no-allocation-site-pretenuring');
// Every command is a process of its own: what the last one compiled halves the time until the next one begins. Node's own place for it is in
// /tmp, where another user could put compiled code first. Without a home that can be written there is no cache.
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dawatch');
if (isAbsolute(cache)) module.enableCompileCache(cache);
// Whoever reads may go first, as `head` does; this is how a shell shows an end by SIGPIPE.
process.stdout.on('error', () => process.exit(141));

const { run } = await import('./program.ts');
const exitCode = await run(process.argv.slice(2));
if (exitCode !== undefined) process.exit(exitCode);
