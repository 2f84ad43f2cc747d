// Generates the table of docs/cli.md from the commands.
import { readFileSync, writeFileSync } from 'node:fs';
import { FILE, withCommandTable } from './command-table.ts';

writeFileSync(FILE, await withCommandTable(readFileSync(FILE, 'utf8')));
