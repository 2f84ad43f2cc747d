import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeToken } from '../../../../src/access/credentials-store.ts';
import { doctorJson, doctorText } from '../../../../src/cli/doctor-command.ts';
import { plain } from '../../../../src/cli/output.ts';
import { ok, problem, warning } from '../../../../src/operations/doctor/finding.ts';
import { cliProcess } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const FINDINGS = [
  ok('node', 'Node 24.21.0'),
  warning('disk', '0.5 GB are free', 'free some space'),
  problem('upstream.default', 'refused\u001b[2J', 'set the key'),
];

it('prints a line per finding, its remedy below it, and a summary', () => {
  expect(doctorText(FINDINGS, plain)).toBe(
    `ok       node              Node 24.21.0
warning  disk              0.5 GB are free
                           do: free some space
problem  upstream.default  refused\\u001b[2J
                           do: set the key

1 problem, 1 warning
`,
  );
  expect(doctorText(FINDINGS.slice(0, 1), plain)).toMatch(/\nno problems found\n$/);
});

it('colours the levels without moving the columns', () => {
  const text = doctorText(FINDINGS, (colour, content) => `<${colour}>${content}</>`);
  expect(text).toContain('<green>ok     </>  node');
  expect(text).toContain('<red>problem</>  upstream.default');
  expect(text).toContain('<bold>do:</> set the key');
});

it('prints JSON with the worst level', () => {
  expect(JSON.parse(doctorJson(FINDINGS))).toEqual({ status: 'problem', checks: FINDINGS });
  expect(JSON.parse(doctorJson(FINDINGS.slice(0, 2)))).toMatchObject({ status: 'warning' });
  expect(JSON.parse(doctorJson([]))).toEqual({ status: 'ok', checks: [] });
});

it('exits with 0 if all checks pass, and with 2 if one reports a problem', async () => {
  const { url } = await serve((_request, response) =>
    response.writeHead(500).end('{"error":"record not found"}'),
  );
  const common = {
    DAWATCH_DATABASE: join(tempFolder(), 'dawatch.db'),
    DAWATCH_UPSTREAM_API_KEY: 'the-upstream-key',
    DAWATCH_API_KEY: makeToken('service'),
  };
  const well = await cliProcess(['doctor'], { env: { ...common, DAWATCH_UPSTREAM_URL: url } });
  expect([well.code, well.stderr]).toEqual([0, '']);
  expect(well.stdout).toMatch(
    /^ok +upstream\.default +127\.0\.0\.1:\d+ works and accepts the key$/m,
  );
  const bad = await cliProcess(['doctor', '--json'], { env: { ...common, DAWATCH_PORT: 'many' } });
  expect([bad.code, bad.stderr]).toEqual([2, '']);
  expect(JSON.parse(bad.stdout)).toMatchObject({ status: 'problem' });
  expect(bad.stdout).toMatch(/"server\.port must be .*DAWATCH_PORT/);
});
