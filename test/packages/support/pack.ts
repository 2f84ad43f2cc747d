import { execFileSync } from 'node:child_process';
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
import type { TestProject } from 'vitest/node';
import pkg from '../../../package.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../../..');
/**
 * Root certificates of Debian, for registries that use a private certificate authority. A bare Node
 * does not read them.
 */
const SYSTEM_CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Versions of Node that the packages are installed and run with: the oldest and the newest that
 * each supports.
 */
export const SERVER_NODES = ['22.19.0', '24.21.0'] as const;
export const CLIENT_NODES = ['20.19.0', '24.21.0'] as const;
const TOO_OLD_NODE = '20.19.5';

export type Packages = {
  /** The tarballs. */
  server: string;
  client: string;
  pacing: string;
  npmCli: string;
  /** Folders that contain nothing but a `node` of this version. */
  nodes: Record<string, string>;
  tooOldNode: string;
  bun: string;
};

declare module 'vitest' {
  interface ProvidedContext {
    packages: Packages;
  }
}

/** Builds and packs the packages, and downloads the versions of Node, once for all tests. */
export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-packages-'));
  const npmCli = findNpm();
  const npm = (cwd: string, ...args: string[]) =>
    execFileSync(process.execPath, [npmCli, ...args], { cwd, env: installEnv(), encoding: 'utf8' });

  execFileSync(process.execPath, ['.ci/build.ts'], {
    cwd: ROOT,
    stdio: 'inherit',
    env: withTools(),
  });
  npm(ROOT, 'pack', '--include-workspace-root', '--workspaces', '--pack-destination', folder);

  const platform = `${process.platform}-${process.arch}`;
  const download = (name: string, spec: string) => {
    const to = join(folder, name);
    mkdirSync(to);
    writeFileSync(join(to, 'package.json'), '{}');
    npm(to, 'install', '--ignore-scripts', '--no-package-lock', spec);
    return join(to, 'node_modules');
  };
  const nodeOf = (version: string) => {
    const binary = join(
      download(`node-${version}`, `node-${platform}@${version}`),
      `node-${platform}/bin/node`,
    );
    const path = join(folder, `path-${version}`);
    mkdirSync(path);
    symlinkSync(binary, join(path, 'node'));
    return path;
  };
  const versions = [...new Set([...SERVER_NODES, ...CLIENT_NODES])];
  project.provide('packages', {
    server: join(folder, `dawatch-${pkg.version}.tgz`),
    client: join(folder, `dawatch-client-${pkg.version}.tgz`),
    pacing: join(folder, `dawatch-pacing-${pkg.version}.tgz`),
    npmCli,
    nodes: Object.fromEntries(versions.map((version) => [version, nodeOf(version)])),
    tooOldNode: nodeOf(TOO_OLD_NODE),
    bun: join(download('bun', `@oven/bun-${platform}@1.4.5`), `@oven/bun-${platform}/bin/bun`),
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
