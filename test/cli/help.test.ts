import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FILE, withCommandTable } from '../../.ci/docs/command-table.ts';
import { createProgram } from '../../src/cli/program.ts';
import { cli, cliProcess } from '../support/processes/cli.ts';
import { tempFolder } from '../support/temp-folder.ts';

const program = await createProgram();
const COMMANDS = program.commands
  .map((command) => command.name())
  .filter((one) => one !== 'complete');
const NESTED = program.commands.flatMap((group) =>
  group.commands.map((command) => `${group.name()} ${command.name()}`),
);

it('docs/cli.md lists every command (npm run docs:cli)', async () => {
  const page = readFileSync(FILE, 'utf8');
  expect(await withCommandTable(page)).toBe(page);
});

describe('--help', () => {
  it('lists every command, the first steps, and the exit codes', async () => {
    const { code, stdout } = await cliProcess(['--help']);
    expect(code).toBe(0);
    const listed = [...(stdout.split('Commands:')[1] ?? '').matchAll(/^ {2}([a-z-]+)[| ]/gm)].map(
      ([, name]) => name,
    );
    expect(listed).toEqual([...COMMANDS, 'help']);
    expect(stdout).toContain('Start with `dawatch demo`');
    for (const exitCode of [0, 1, 2, 3, 4, 5])
      expect(stdout).toMatch(new RegExp(`\\b${exitCode}  [a-z]`));
  });

  it.each([...COMMANDS, ...NESTED])(
    'of %s describes it and each of its arguments and options',
    async (command) => {
      const { code, stdout, stderr } = await cli([...command.split(' '), '--help']);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(
        new RegExp(`^Usage: dawatch ${command}(?:\\|settings)? .*\n\n[A-Z][^.]{20,}\\.`),
      );
      const entries = [...stdout.matchAll(/^ {2}(-\S.*|ids.*|file.*)\n?( {10,}.*)?/gm)].map(
        ([entry]) => entry,
      );
      expect(entries.length).toBeGreaterThan(0);
      for (const entry of entries) expect(entry).toMatch(/\S {2,}\S|\n +\S/);
      // A default is shown as it would be typed: a duration with its unit, no quotes around a
      // number, no empty list.
      for (const entry of stdout
        .split(/\n(?= {2}\S)/)
        .map((text) => text.replaceAll(/\s+/g, ' '))) {
        expect(entry).not.toMatch(/default: (?:\[\]|"\d+")/);
        if (/^ --[a-z-]+ <duration>/.test(entry))
          expect(entry).toMatch(
            /\(default: (?:\d+(?:ms|s|m|h|d)|no limit|unchanged|what the server is set to)\)/,
          );
      }
    },
  );
});

describe('exits with 2, and points to --help, for', () => {
  it.each([
    ['a misspelt command', ['stats'], 'Did you mean status?'],
    ['an unknown option', ['status', '--frobnicate'], "unknown option '--frobnicate'"],
    ['no ids where they are needed', ['cancel'], "missing required argument 'ids'"],
  ])('%s', async (_, args, message) => {
    const { code, stdout, stderr } = await cli(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(stderr).toContain('--help');
  });

  it('nothing at all', async () => {
    const { code, stderr } = await cliProcess([]);
    expect(code).toBe(2);
    expect(stderr).toContain('Usage: dawatch');
  });
});

it('help settings shows the file that describes every setting', async () => {
  const { code, stdout } = await cli(['help', 'settings']);
  expect(code).toBe(0);
  expect(stdout).toContain(readFileSync('config/dawatch.yaml', 'utf8'));
  expect((await cli(['help', 'list'])).stdout).toBe((await cli(['list', '--help'])).stdout);
});

describe('config', () => {
  const secrets = {
    DAWATCH_SERVICE_KEY: 'the-key-of-the-clients-0123456789',
    DAWATCH_UPSTREAM_API_KEY: 'the-key-of-the-upstream',
  };

  it('shows every setting with its source, and no secret', async () => {
    const cwd = tempFolder();
    writeFileSync(
      join(cwd, 'my.yaml'),
      `server: {port: 9000, cors_origins: [https://${'a'.repeat(200)}.example]}\nupstreams: {spare: {api_key: k-1234}}\n`,
    );
    const env = { ...secrets, DAWATCH_CONFIG: 'my.yaml', DAWATCH_PORT: '9001' };
    const { code, stdout } = await cli(['config'], { cwd, env });
    expect(code).toBe(0);
    for (const line of [
      /^server\.port +9001 +DAWATCH_PORT$/m,
      /^server\.cors_origins +\["https:\/\/a+… +my\.yaml$/m,
      /^server\.host +127\.0\.0\.1 +default +\[DAWATCH_HOST\]$/m,
      /^auth\.service_key +\*{8} +DAWATCH_SERVICE_KEY/m,
      /^upstreams\.default\.api_key +\*{8} +DAWATCH_UPSTREAM_API_KEY/m,
      /^upstreams\.spare\.api_key +\*{8} +my\.yaml/m,
      /^upstreams\.default\.url +\(not set\) +default/m,
    ])
      expect(stdout).toMatch(line);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThan(140);
    for (const secret of [...Object.values(secrets), 'k-1234'])
      expect(stdout).not.toContain(secret);
  });

  it('shows the same in JSON', async () => {
    const { code, stdout } = await cli(['config', '--json'], { env: secrets });
    expect(code).toBe(0);
    const settings = JSON.parse(stdout) as { name: string; description: string }[];
    expect(settings).toContainEqual({
      name: 'auth.service_key',
      value: '********',
      source: 'DAWATCH_SERVICE_KEY',
      environment: 'DAWATCH_SERVICE_KEY',
      description: expect.any(String),
    });
    for (const { name, description } of settings) expect(description, name).not.toBe('');
    for (const secret of Object.values(secrets)) expect(stdout).not.toContain(secret);
  });
});
