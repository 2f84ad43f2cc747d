// Generates the table of docs/observability.md from the registered metrics.
import { readFileSync, writeFileSync } from 'node:fs';
import { withTable } from './metrics-table.ts';

const file = 'docs/observability.md';
writeFileSync(file, await withTable(readFileSync(file, 'utf8')));
