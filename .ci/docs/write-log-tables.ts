// Generates the table of docs/observability.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { withLogTable } from './log-tables.ts';

const FILE = 'docs/observability.md';
writeFileSync(FILE, withLogTable(readFileSync(FILE, 'utf8')));
