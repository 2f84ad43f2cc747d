import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { cliProcess } from '../../../support/processes/cli.ts';

/** Returns the words that are offered for a command line with the cursor at its end. */
async function offered(line: string): Promise<string[]> {
  const { code, stdout } = await cliProcess(['complete', '--', ...line.split(' ')]);
  expect(code).toBe(0);
  return stdout.split('\n').flatMap((row) => (/^[^:]/.test(row) ? [row.split('\t')[0] ?? ''] : []));
}

it.each([
  ['webhooks cr', ['create']],
  ['list --status f', ['failing', 'finalized', 'failed']],
] as const)('completes %j', async (line, words) => {
  expect(await offered(line)).toEqual(words);
});

it('prints a script that bash can read', async () => {
  const { code, stdout } = await cliProcess(['completion', 'bash']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('dawatch complete --')]);
  execFileSync('bash', ['-n'], { input: stdout });
});
