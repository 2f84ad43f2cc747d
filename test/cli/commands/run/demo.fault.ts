import { expect, it } from 'vitest';
import { startCli } from '../../../support/processes/cli.ts';

it('with --keep, the dashboard stays after the end of the demo, until it is interrupted', async () => {
  const { child, exit } = startCli(['demo', '--submissions', '1', '--keep']);
  let shown = '';
  for await (const chunk of child.stdout) {
    shown += chunk;
    if (shown.includes('until Ctrl-C')) break;
  }
  expect(shown).toContain('1, all finalized');
  const [, url = ''] = /stays at (\S+),/.exec(shown) ?? [];
  const [, key = ''] = /sign in with the key (\w+)/.exec(shown) ?? [];
  expect((await fetch(url)).headers.get('content-type')).toContain('text/html');
  const { submissions } = await (
    await fetch(`${url}/v1/submissions`, { headers: { 'x-api-key': key } })
  ).json();
  expect(submissions).toMatchObject([{ status: 'finalized' }]);
  child.kill('SIGINT');
  expect(await exit).toBe(0);
});
