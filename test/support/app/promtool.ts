import { spawnSync } from 'node:child_process';

/** For `describe.skipIf`: in CI nothing is skipped. */
export function isPromtoolMissing(): boolean {
  if (process.env.CI || spawnSync('promtool', ['--version']).status === 0) return false;
  console.warn(
    'SKIPPED: promtool is not on the PATH; install prometheus to run the tests that need it.',
  );
  return true;
}

/** Returns the output and the exit code, which is 0 only without any complaint. */
export function promtool(
  args: readonly string[],
  input = '',
): { status: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, {
    input,
    encoding: 'utf8',
  });
  if (error) throw error;
  return { status, output: `${stdout}${stderr}` };
}
