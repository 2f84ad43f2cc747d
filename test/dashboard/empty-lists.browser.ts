import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/wiring/settings.ts';
import { SKIPPED, useBrowser } from '../support/app/browser.ts';
import { ADMIN_TOKEN, UPSTREAM_BEARER } from '../support/app/lookups.ts';
import { API_KEY, useApp, useAppWithSandbox } from '../support/app/running-app.ts';
import { MAIN } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });
/** The app of the commands, so that the lists stay empty. */
const filled = useAppWithSandbox({
  adminToken: ADMIN_TOKEN,
  upstream: { bearer: UPSTREAM_BEARER },
});
const browser = useBrowser();

/** Runs a command in a new folder as a shell does, with this program as that of npx. */
async function paste(command: string) {
  const folder = tempFolder();
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  const npx = join(programs, 'npx');
  writeFileSync(npx, `#!/bin/sh\nshift\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(npx, 0o755);
  const env = {
    PATH: [programs, process.env.PATH].join(delimiter),
    DAWATCH_URL: filled.url,
    DAWATCH_DATABASE: filled.database,
    DAWATCH_API_KEY: API_KEY,
    DAWATCH_ADMIN_TOKEN: ADMIN_TOKEN,
  };
  await promisify(execFile)('sh', ['-c', command], { cwd: folder, env });
  return folder;
}

describe.skipIf(SKIPPED)('an empty list', () => {
  const open = async (path: string) => {
    const page = await browser.show(app.url, path);
    const command = await page.getByRole('main').locator('pre').first().textContent();
    return await paste(command ?? '');
  };

  it.each(['alerts', 'tokens', 'users', 'webhooks', 'deliveries', 'submissions'])(
    'of %s teaches a command that works when pasted',
    async (path) => {
      await open(path);
    },
  );

  it('of channels teaches a command that adds one to the settings', async () => {
    const file = join(await open('channels'), 'config/dawatch.yaml');
    const env = { DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1', DAWATCH_UPSTREAM_API_KEY: 'x' };
    const { config } = loadConfig({ file, env });
    expect(config.channels).toMatchObject({ ops: { type: 'slack' } });
    expect(config.routes).toEqual([expect.objectContaining({ channels: ['ops'] })]);
  });
});
