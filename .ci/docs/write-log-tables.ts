// Generates the table of docs/logs.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { withLogTable } from './log-tables.ts';

const FILE = 'docs/logs.md';
writeFileSync(FILE, withLogTable(readFileSync(FILE, 'utf8')));
