import { type ExecFileException, execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { installEnv, NEWEST_NODE, type Packages } from './pack.ts';

const ROOT = join(import.meta.dirname, '../../..');
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const NEEDED = ['podman', 'runc', 'mmdebstrap', 'iptables'];

/**
 * The reason to skip the tests in containers. CI skips them only where the kernel refuses
 * containers.
 */
export const SKIPPED = reasonToSkip();
if (SKIPPED !== undefined) console.warn(`SKIPPED: the tests of the image: ${SKIPPED}`);

function reasonToSkip(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'they need Linux and root';
  if (spawnSync('unshare', ['--mount', 'true']).status !== 0)
    return 'this process may not create containers';
  const missing = NEEDED.filter(
    (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0,
  );
  return missing.length > 0 && !process.env.CI ? `apt-get install ${missing.join(' ')}` : undefined;
}

export type Result = { code: number; stdout: string; stderr: string };
export type Containers = Awaited<ReturnType<typeof openContainers>>;

/**
 * Podman with images, containers and networks in a folder of their own. The base images are
 * stand-ins of the same names, made of Debian packages and the npm package of Node, because not
 * every machine reaches a registry of images. The caller closes it.
 */
export async function openContainers({ npmCli, nodes }: Pick<Packages, 'npmCli' | 'nodes'>) {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-containers-'));
  writeFileSync(
    join(folder, 'storage.conf'),
    `[storage]\ndriver = "overlay"\ngraphroot = "${folder}/images"\nrunroot = "${folder}/run"\n`,
  );
  // Limits that also a process without CAP_SYS_RESOURCE may set.
  writeFileSync(
    join(folder, 'containers.conf'),
    `[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n
     [engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n
     [network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "${folder}/networks"\n`,
  );
  const env = {
    ...installEnv(),
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    CONTAINERS_CONF: join(folder, 'containers.conf'),
    BUILDAH_ISOLATION: 'chroot',
    // The default format has no health checks.
    BUILDAH_FORMAT: 'docker',
  };
  /** Runs a command of Podman to its end. */
  const podman = (...args: string[]) =>
    new Promise<Result>((resolve) =>
      execFile('podman', args, { cwd: ROOT, env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
        resolve({ code: exitCodeOf(error), stdout, stderr }),
      ),
    );
  const succeed = async (...args: string[]) => {
    const { code, stdout, stderr } = await podman(...args);
    if (code !== 0)
      throw new Error(`podman ${args.join(' ')} ended with ${code}: ${stderr.slice(-4_000)}`);
    return stdout.trim();
  };
  const close = async () => {
    await podman('rm', '--all', '--force', '--time', '0');
    await podman('rmi', '--all', '--force');
    rmSync(folder, { recursive: true, force: true });
  };

  async function makeBases(): Promise<void> {
    const base = join(folder, 'base');
    mkdirSync(base);
    const [mirror = ''] = execFileSync(
      'apt-get',
      ['indextargets', '--format', '$(REPO_URI)', 'Codename: bookworm'],
      {
        encoding: 'utf8',
      },
    ).split('\n');
    const options = ['--variant=minbase', '--include=ca-certificates,redis-server'];
    execFileSync('mmdebstrap', [...options, 'bookworm', join(base, 'debian'), mirror], {
      stdio: 'pipe',
      env,
    });
    cpSync(realpathSync(join(nodes[NEWEST_NODE] as string, 'node')), join(base, 'node'));
    cpSync(dirname(dirname(npmCli)), join(base, 'npm'), { recursive: true });
    // Registries may use a private certificate authority.
    if (existsSync(CERTIFICATES)) cpSync(CERTIFICATES, join(base, 'debian', CERTIFICATES));
    writeFileSync(join(base, 'entrypoint'), REDIS_ENTRYPOINT, { mode: 0o755 });
    for (const [name, file] of Object.entries(BASES)) {
      writeFileSync(join(base, 'Dockerfile'), file);
      await succeed('build', '--layers=false', '--tag', name, base);
    }
    rmSync(base, { recursive: true, force: true });
  }

  try {
    await makeBases();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    podman,
    succeed,
    /** Builds the image of the Dockerfile. npm uses its cache on this machine. */
    build(tag: string): Promise<string> {
      const cache = execFileSync(process.execPath, [npmCli, 'config', 'get', 'cache'], {
        encoding: 'utf8',
        env,
      }).trim();
      mkdirSync(join(cache, '_cacache'), { recursive: true });
      const volume = `${join(cache, '_cacache')}:/root/.npm/_cacache`;
      return succeed(
        'build',
        '--layers=false',
        '--pull=never',
        '--volume',
        volume,
        '--tag',
        tag,
        ROOT,
      );
    },
    close,
  };
}

const BASES = {
  'docker.io/library/node:24-bookworm-slim': `
    FROM scratch
    COPY debian /
    COPY node /usr/local/bin/node
    COPY npm /usr/local/lib/node_modules/npm
    RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && useradd --uid 1000 --create-home node
    ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}
    CMD ["node"]
  `,
  'docker.io/library/redis:8-alpine': `
    FROM docker.io/library/node:24-bookworm-slim
    COPY entrypoint /usr/local/bin/docker-entrypoint.sh
    RUN mkdir -p /data && chown redis:redis /data
    VOLUME /data
    WORKDIR /data
    ENTRYPOINT ["docker-entrypoint.sh"]
    CMD ["redis-server"]
  `,
};

/** As in the original: Redis runs as its own user, other programs as root. */
const REDIS_ENTRYPOINT = `#!/bin/sh
set -e
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  exec setpriv --reuid redis --regid redis --clear-groups -- "$0" "$@"
fi
exec "$@"
`;

function exitCodeOf(error: ExecFileException | null): number {
  if (error === null) return 0;
  return typeof error.code === 'number' ? error.code : 1;
}
