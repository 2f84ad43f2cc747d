import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cliProcess } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

/** Removes the cache folder that tests set for every process. */
const OWN = { NODE_COMPILE_CACHE: null };

it('writes compiled code to the home directory of the user, and nothing to the folder for temporary files', async () => {
  const [home, temporary] = [tempFolder(), tempFolder()];
  const { code } = await cliProcess(['--version'], {
    env: { ...OWN, HOME: home, TMPDIR: temporary },
  });
  expect(code).toBe(0);
  expect(readdirSync(join(home, '.cache/dawatch'))).toHaveLength(1);
  expect(readdirSync(temporary)).toEqual([]);
});

it('is disabled without a writable home directory', async () => {
  const cwd = tempFolder();
  const without = await cliProcess(['--version'], { cwd, env: { ...OWN, HOME: '/dev/null' } });
  expect([without.code, without.stderr]).toEqual([0, '']);
  expect(readdirSync(cwd)).toEqual([]);
});
