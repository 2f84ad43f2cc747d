import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isPromtoolMissing, promtool } from '../support/app/metrics.ts';
import { freePort } from '../support/servers/free-port.ts';
import { IS_NGINX_MISSING, startNginx } from '../support/servers/nginx.ts';
import { openReceiver, selfSigned } from '../support/servers/receiver.ts';
import { tempFolder } from '../support/temp-folder.ts';

const FOLDER = 'deploy/host';
const page = readFileSync('docs/production.md', 'utf8');
const textOf = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const UNITS = readdirSync(FOLDER).filter((name) => /\.(?:service|timer)$/.test(name));
/** Out of 100, where 0 is least exposed. */
const MAX_EXPOSURE = 15;
const TLS = selfSigned();

const isMissing = (program: string) =>
  !process.env.CI && spawnSync(program, ['--version']).status !== 0;

function run(program: string, args: string[]) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}` };
}

/** The units with a program that exists on every machine. */
function storeUnits(): string {
  const folder = tempFolder();
  for (const name of UNITS)
    writeFileSync(
      join(folder, name),
      textOf(name).replaceAll(/\bdawatch (?=serve|worker|backup)|\/usr\/bin\/find/g, '/bin/true '),
    );
  return folder;
}

it('docs/production.md links to every file for a host', () => {
  expect(readdirSync(FOLDER).filter((name) => !page.includes(`../${FOLDER}/${name}`))).toEqual([]);
});

it.skipIf(isMissing('systemd-analyze'))(
  'systemd accepts the units, and finds them hardened',
  () => {
    const folder = storeUnits();
    const units = UNITS.map((name) => join(folder, name));
    expect(run('systemd-analyze', ['verify', ...units])).toEqual({ status: 0, output: '' });
    const security = ['security', '--offline=true', `--threshold=${MAX_EXPOSURE}`];
    const services = units.filter((name) => name.endsWith('.service'));
    expect(run('systemd-analyze', [...security, ...services])).toMatchObject({ status: 0 });
  },
);

it('every unit writes to the journal that the file for journald limits', () => {
  const file = readdirSync(FOLDER).find((name) => name.startsWith('journald@')) ?? '';
  const [, namespace] = /@(.+)\.conf$/.exec(file) ?? [];
  expect(textOf(file)).toMatch(/^SystemMaxUse=\d+G$/m);
  for (const name of UNITS.filter((unit) => unit.endsWith('.service')))
    expect(textOf(name)).toContain(`\nLogNamespace=${namespace}\n`);
});

it.skipIf(IS_NGINX_MISSING || !TLS)('nginx hides the metrics, also below a path', async () => {
  const server = await openReceiver();
  const port = await freePort();
  await startNginx({ port, path: '/watch/', target: server.url, tls: TLS ?? expect.fail() });
  const statusOf = async (path: string) => {
    const target = `https://127.0.0.1:${port}${path}`;
    const [response] = await once(get(target, { rejectUnauthorized: false }), 'response');
    response.resume();
    return response.statusCode;
  };
  expect(await statusOf('/watch/readyz')).toBe(200);
  for (const path of ['/metrics', '/watch/metrics', '/watch//%6Detrics'])
    expect(await statusOf(path)).toBe(404);
  expect(server.requests.map(({ path }) => path)).toEqual(['/readyz']);
});

it.skipIf(isPromtoolMissing())('Prometheus accepts its files in one folder', () => {
  const folder = tempFolder();
  cpSync('config/prometheus', folder, { recursive: true });
  expect(promtool(['check', 'config', join(folder, 'prometheus.yml')])).toMatchObject({
    status: 0,
  });
});
