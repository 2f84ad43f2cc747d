// Generates the tables of docs/logs.md from the event catalog.
import { readFileSync, writeFileSync } from 'node:fs';
import { withLogTables } from './log-tables.ts';

const FILE = 'docs/logs.md';
writeFileSync(FILE, withLogTables(readFileSync(FILE, 'utf8')));
