import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { sandboxOptionFields } from '../../../../src/sandbox/options.ts';
import { cli, startCli } from '../../../support/processes/cli.ts';

const flagOf = (name: string) =>
  `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

it('has a flag for every option of the sandbox, with its description and default', async () => {
  const { code, stdout } = await cli(['sandbox', '--help']);
  expect(code).toBe(0);
  const help = stdout.replaceAll(/\s+/g, ' ');
  const defaults = sandboxOptionFields.parse({});
  for (const [name, schema] of Object.entries(sandboxOptionFields.shape)) {
    const fallback = defaults[name as keyof typeof defaults];
    const shown = fallback === undefined ? '' : ` (default: ${JSON.stringify(fallback)})`;
    expect(help).toContain(`${flagOf(name)} <value> ${schema.description}${shown}`);
  }
});

it('serves the upstream that its flags describe, until SIGTERM', async () => {
  const flags = '--port 0 --api-key my-key --row-delay-ms 0'.split(' ');
  const { child, exit } = startCli(['sandbox', ...flags]);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const url =
    /^sandbox upstream listens on (http:\/\/127\.0\.0\.1:\d+), API key my-key\nsubmission \S+ has the data "hello"\n$/.exec(
      String(line),
    )?.[1];
  const headers = { 'x-api-key': 'my-key', 'content-type': 'application/json' };
  const submitted = await fetch(`${url}/v1/submit_data`, {
    method: 'POST',
    headers,
    body: '{"data":"hello"}',
  });
  const { submission_id } = (await submitted.json()) as { submission_id: string };
  for (const id of [submission_id, '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325']) {
    const found = await fetch(`${url}/v1/get_submission_info?submission_id=${id}`, { headers });
    expect(await found.json()).toMatchObject({ id });
  }
  const absent = '00000000-0000-4000-8000-000000000000';
  expect(
    (await fetch(`${url}/v1/get_submission_info?submission_id=${absent}`, { headers })).status,
  ).toBe(500);
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
});

describe('refuses with exit code 2', () => {
  it('reports every value that is out of range at once, each with its flag', async () => {
    const line = 'sandbox --speed 0 --slot-s soon --error-rate 2 --senders -1';
    const { code, stdout, stderr } = await cli([...line.split(' '), '--seed', '']);
    expect([code, stdout]).toEqual([2, '']);
    for (const flag of line.match(/--[a-z-]+/g) ?? []) expect(stderr).toContain(`${flag} `);
    expect(stderr).toContain('--seed ');
  });

  it.each([
    ['--port 65536', 'Expected a port, 0 to 65535.'],
    ['--slot_s 1', "unknown option '--slot_s'"],
    ['--world quiet', '--world '],
    ['--slot-s 0', '--slot-s '],
  ])('%s', async (flags, message) => {
    const { code, stderr } = await cli(['sandbox', ...flags.split(' ')]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});
