#!/usr/bin/env node
// @ts-check
// JavaScript, because type stripping takes 80 ms to load and is not needed for modules in the
// compile cache.
import { existsSync } from 'node:fs';
import module from 'node:module';
import { constants, getPriority, homedir, setPriority } from 'node:os';
import { isAbsolute, join } from 'node:path';
import v8 from 'node:v8';

const { node } = process.versions;
const [major = 0, minor = 0] = node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`dawatch needs Node 22.19 or newer, this is ${node}\n`);
  process.exit(1);
}
// With pretenuring, V8 allocates request objects in the old generation, which costs a third more
// CPU and 100 MB under load.
v8.setFlagsFromString('--no-allocation-site-pretenuring');
// The compile cache halves the start time of a command. It is not in /tmp, Node's default, because
// another user could place compiled code there. Without a writable home directory there is no
// cache.
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dawatch');
if (isAbsolute(cache)) {
  module.enableCompileCache(cache);
  // For threads.
  process.env.NODE_COMPILE_CACHE ??= cache;
}
// It uses a core for minutes. A server beside it that waits for a core responds late.
if (process.argv[2] === 'backup') {
  try {
    setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL));
  } catch {
    // A sandbox may refuse it.
  }
}
// A reader such as `head` may close the pipe; 141 is the exit code that shells show for SIGPIPE. A
// server outlives its log, and counts what is lost.
const outlives = process.argv[2] === 'serve' || process.argv[2] === 'worker';
process.stderr.on('error', () => undefined);
process.stdout.on('error', (/** @type {NodeJS.ErrnoException} */ error) => {
  if (outlives) return;
  if (error.code !== 'EPIPE') process.stderr.write(`dawatch: cannot write: ${error.message}\n`);
  process.exit(error.code === 'EPIPE' ? 141 : 5);
});

// A checkout runs its sources. The published package contains this file and the compiled sources.
const isCheckout = existsSync(new URL('program.ts', import.meta.url));
const { run } = await import(isCheckout ? './program.ts' : './program.js');
const exitCode = await run(process.argv.slice(2));
if (exitCode !== undefined) process.exit(exitCode);
