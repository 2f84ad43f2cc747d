import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { sandboxOptionsSchema } from '../../src/sandbox/options.ts';
import { cli, startCli } from '../support/cli.ts';

const flagOf = (name: string) => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

it('has a flag for every option of the sandbox, with what it does and its default', async () => {
  const { code, stdout } = await cli(['sandbox', '--help']);
  expect(code).toBe(0);
  const help = stdout.replaceAll(/\s+/g, ' ');
  const defaults = sandboxOptionsSchema.parse({});
  for (const [name, schema] of Object.entries(sandboxOptionsSchema.shape)) {
    const fallback = JSON.stringify(defaults[name as keyof typeof defaults]);
    expect(help).toContain(`${flagOf(name)} <value> ${schema.description} (default: ${fallback})`);
  }
});

it('is the upstream that its flags describe, until SIGTERM', async () => {
  const flags = [
    '--port',
    '0',
    '--api-key',
    'my-key',
    '--row-delay-ms',
    '0',
    '--unknown-status',
    '404',
    '--zone',
    'false',
  ];
  const { child, exit } = startCli(['sandbox', ...flags]);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const url = /^sandbox upstream listens on (http:\/\/127\.0\.0\.1:\d+), its key is my-key\n$/.exec(String(line))?.[1];
  const headers = { 'x-api-key': 'my-key', 'content-type': 'application/json' };
  const submitted = await fetch(`${url}/v1/submit_data`, { method: 'POST', headers, body: '{"data":"hello"}' });
  const { submission_id } = (await submitted.json()) as { submission_id: string };
  const found = await fetch(`${url}/v1/get_submission_info?submission_id=${submission_id}`, { headers });
  expect(await found.json()).toMatchObject({ id: submission_id, data: { created_at: expect.stringMatching(/\d$/) } });
  const absent = '00000000-0000-4000-8000-000000000000';
  expect((await fetch(`${url}/v1/get_submission_info?submission_id=${absent}`, { headers })).status).toBe(404);
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
});

describe('refuses with exit code 2', () => {
  it('every value that is out of range, at once, each by its flag', async () => {
    const bad = ['--speed', '0', '--block-time-s', 'soon', '--error-rate', '2', '--seed', '', '--fraction-digits', '4'];
    const { code, stdout, stderr } = await cli(['sandbox', ...bad, '--unknown-status', '200', '--user-params', 'x']);
    expect([code, stdout]).toEqual([2, '']);
    for (const flag of [
      'speed',
      'block-time-s',
      'error-rate',
      'seed',
      'fraction-digits',
      'unknown-status',
      'user-params',
    ])
      expect(stderr).toContain(`--${flag}: `);
  });

  it.each([
    [['--wrapped', 'maybe'], 'Expected true or false.'],
    [['--port', '65536'], 'Expected a port, 0 to 65535.'],
    [['--port', '0', '--host', '192.0.2.1'], '192.0.2.1'],
    [['--block_time_s', '1'], "unknown option '--block_time_s'"],
  ])('%j', async (args, message) => {
    const { code, stderr } = await cli(['sandbox', ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});
