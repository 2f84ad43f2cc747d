import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isPromtoolMissing, promtool } from '../support/app/metrics.ts';
import { IS_NGINX_MISSING } from '../support/servers/nginx.ts';
import { tempFolder } from '../support/temp-folder.ts';

const FOLDER = 'deploy/host';
const page = readFileSync('docs/production.md', 'utf8');
const textOf = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const UNITS = readdirSync(FOLDER).filter((name) => /\.(?:service|timer)$/.test(name));
/** Out of 100, where 0 is least exposed. */
const MAX_EXPOSURE = 15;

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
    for (const name of UNITS) {
      expect(run('systemd-analyze', ['verify', join(folder, name)])).toEqual({
        status: 0,
        output: '',
      });
      if (!name.endsWith('.service')) continue;
      const security = ['security', '--offline=true', `--threshold=${MAX_EXPOSURE}`];
      expect(run('systemd-analyze', [...security, join(folder, name)])).toMatchObject({
        status: 0,
      });
    }
  },
);

it('every unit writes to the journal that the file for journald limits', () => {
  const file = readdirSync(FOLDER).find((name) => name.startsWith('journald@')) ?? '';
  const [, namespace] = /@(.+)\.conf$/.exec(file) ?? [];
  expect(textOf(file)).toMatch(/^SystemMaxUse=\d+G$/m);
  for (const name of UNITS.filter((unit) => unit.endsWith('.service')))
    expect(textOf(name)).toContain(`\nLogNamespace=${namespace}\n`);
});

it.skipIf(IS_NGINX_MISSING)('nginx accepts its file', () => {
  const folder = tempFolder();
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'].concat([
      '-subj',
      '/CN=dawatch.example.com',
      '-keyout',
      key,
      '-out',
      certificate,
    ]),
    { stdio: 'ignore' },
  );
  const site = textOf('nginx.conf')
    .replace(/\/etc\/letsencrypt\/\S+fullchain\.pem/, certificate)
    .replace(/\/etc\/letsencrypt\/\S+privkey\.pem/, key)
    // Only root may listen on the ports 80 and 443, and not every machine has IPv6.
    .replaceAll(/listen \[::\].*\n/g, '')
    .replaceAll(/listen (80|443)/g, (_, port) => `listen unix:${folder}/${port}`);
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `error_log stderr; pid ${folder}/pid; events {} http { access_log off; ${site} }`,
  );
  const { status, output } = run('nginx', ['-t', '-c', file, '-p', folder]);
  expect(status, output).toBe(0);
});

it.skipIf(isPromtoolMissing())('Prometheus accepts its files in one folder', () => {
  const folder = tempFolder();
  cpSync('config/prometheus', folder, { recursive: true });
  expect(promtool(['check', 'config', join(folder, 'prometheus.yml')])).toMatchObject({
    status: 0,
  });
});
