import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import pkg from '../../../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../../..');
/**
 * Root certificates of Debian, for registries that use a private certificate authority. A bare Node
 * does not read them.
 */
const SYSTEM_CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Versions of Node that the packages are installed and run with: the oldest that the server and the
 * client support, and the one that runs the commands of the documents.
 */
export const SERVER_NODE = '22.19.0';
export const CLIENT_NODE = '20.19.0';
export const NEWEST_NODE = '24.21.0';

export type Packages = {
  /** The tarballs. */
  server: string;
  client: string;
  pacing: string;
  npmCli: string;
  /** Folders that contain nothing but a `node` of this version. */
  nodes: Record<string, string>;
  bun: string;
};

declare module 'vitest' {
  interface ProvidedContext {
    packages: Packages;
  }
}

/** Builds and packs the packages, and downloads the versions of Node, once for all tests. */
export default async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-packages-'));
  const npmCli = findNpm();
  const run = promisify(execFile);
  const npm = (cwd: string, ...args: string[]) =>
    run(process.execPath, [npmCli, ...args], { cwd, env: installEnv() });

  const pack = async () => {
    await run(process.execPath, ['.ci/build.ts'], { cwd: ROOT, env: withTools() });
    await npm(ROOT, 'pack', './dist', './src/client', './src/pacing', '--pack-destination', folder);
  };
  const platform = `${process.platform}-${process.arch}`;
  const download = async (name: string, spec: string) => {
    const to = join(folder, name);
    mkdirSync(to);
    writeFileSync(join(to, 'package.json'), '{}');
    await npm(to, 'install', '--ignore-scripts', '--no-package-lock', spec);
    return join(to, 'node_modules');
  };
  const downloadNode = async (version: string) => {
    const modules = await download(`node-${version}`, `node-${platform}@${version}`);
    return join(modules, `node-${platform}/bin/node`);
  };
  const nodeOf = async (version: string): Promise<[string, string]> => {
    const isThis = process.version === `v${version}`;
    const binary = isThis ? process.execPath : await downloadNode(version);
    const path = join(folder, `path-${version}`);
    mkdirSync(path);
    symlinkSync(binary, join(path, 'node'));
    return [version, path];
  };
  const [nodes, bun] = await Promise.all([
    Promise.all([SERVER_NODE, CLIENT_NODE, NEWEST_NODE].map(nodeOf)),
    download('bun', `@oven/bun-${platform}@1.4.5`),
    pack(),
  ]);
  project.provide('packages', {
    server: join(folder, `dawatch-${pkg.version}.tgz`),
    client: join(folder, `dawatch-client-${pkg.version}.tgz`),
    pacing: join(folder, `dawatch-pacing-${pkg.version}.tgz`),
    npmCli,
    nodes: Object.fromEntries(nodes),
    bun: join(bun, `@oven/bun-${platform}/bin/bun`),
  });
  return () => rmSync(folder, { recursive: true, force: true });
}

/**
 * Environment of an installation, without the settings of the npm that may have started this run.
 */
export function installEnv(path = process.env.PATH): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => !/^npm_|^NODE_|^PATH$/i.test(name));
  const certificates =
    process.env.NODE_EXTRA_CA_CERTS ?? (existsSync(SYSTEM_CERTIFICATES) && SYSTEM_CERTIFICATES);
  return {
    ...(Object.fromEntries(own) as Record<string, string>),
    PATH: path ?? '',
    npm_config_fund: 'false',
    npm_config_audit: 'false',
    // The tests install the same packages many times.
    npm_config_prefer_offline: 'true',
    npm_config_fetch_retries: '5',
    npm_config_update_notifier: 'false',
    ...(certificates && { NODE_EXTRA_CA_CERTS: certificates }),
  };
}

function withTools(): Record<string, string> {
  return installEnv([join(ROOT, 'node_modules/.bin'), process.env.PATH].join(delimiter));
}

/** npm is a script beside the machine's node, or the one that runs these tests. */
function findNpm(): string {
  const { npm_execpath: running } = process.env;
  if (running !== undefined && /npm-cli\.js$/.test(running)) return running;
  const found = (process.env.PATH ?? '')
    .split(delimiter)
    .map((path) => join(path, 'npm'))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error('npm is not on the PATH');
  return realpathSync(found);
}

export const npxCliOf = (npmCli: string): string => join(dirname(npmCli), 'npx-cli.js');
