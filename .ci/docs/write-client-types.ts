// Generates the types of the client and of the dashboard, and the table of docs/http.md, from the
// OpenAPI document of a server.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApp } from '../../src/app.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLog } from '../../src/operations/logging/logger.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { clientTypes, FILE } from './client-types.ts';
import { FILE as PAGE, withRouteTable } from './route-table.ts';

const folder = mkdtempSync(join(tmpdir(), 'dawatch-types-'));
const { config } = loadConfig({
  env: {
    DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1',
    DAWATCH_UPSTREAM_API_KEY: 'none',
    DAWATCH_DATABASE: join(folder, 'ledger.db'),
    DAWATCH_PORT: '0',
  },
});
const app = await startApp({
  config,
  log: createLog(config.log, { write: () => undefined }),
  clock: systemClock,
  random: Math.random,
  onNewKey: () => undefined,
});
const document = await (await fetch(`${app.url}/openapi.json`)).text();
writeFileSync(FILE, clientTypes(document));
writeFileSync(PAGE, withRouteTable(readFileSync(PAGE, 'utf8'), document));
await app.close();
rmSync(folder, { recursive: true });
