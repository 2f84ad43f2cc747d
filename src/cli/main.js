#!/usr/bin/env node
// @ts-check
// JavaScript, because type stripping takes 80 ms to load and is not needed for modules in the compile cache.
import module from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import v8 from 'node:v8';

const { node } = process.versions;
if (Number.parseInt(node, 10) < 24) {
  process.stderr.write(
    `dawatch needs Node 24 or newer, this is ${node}. On Linux with glibc (x64, arm64), npm ci installs Node 24 for npm scripts and npx; on other systems, install it yourself\n`,
  );
  process.exit(1);
}
// With pretenuring, V8 allocates request objects in the old generation, which costs a third more CPU and 100 MB under load.
v8.setFlagsFromString('--no-allocation-site-pretenuring');
// The compile cache halves the start time of a command. It is not in /tmp, Node's default, because another user could place
// compiled code there. Without a writable home directory there is no cache.
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dawatch');
if (isAbsolute(cache)) module.enableCompileCache(cache);
// A reader such as `head` may close the pipe; 141 is the exit code that shells show for SIGPIPE.
process.stdout.on('error', () => process.exit(141));

const { run } = await import('./program.ts');
const exitCode = await run(process.argv.slice(2));
if (exitCode !== undefined) process.exit(exitCode);
