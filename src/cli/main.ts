#!/usr/bin/env node
import { enableCompileCache } from 'node:module';

// Every command is a process of its own: what the last one compiled halves the time until the next one begins.
enableCompileCache();
await import('./program.ts');
