#!/usr/bin/env node
import { enableCompileCache } from 'node:module';

// Every command is a process of its own: what the last one compiled halves the time until the next one begins.
enableCompileCache();
// Whoever reads may go first, as `head` does; this is how a shell shows an end by SIGPIPE.
process.stdout.on('error', () => process.exit(141));

const { run } = await import('./program.ts');
const exitCode = await run(process.argv.slice(2));
if (exitCode !== undefined) process.exit(exitCode);
