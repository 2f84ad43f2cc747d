import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../../..');

export type Service = {
  build?: string;
  image?: string;
  profiles?: string[];
  command?: string[];
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  networks: string[];
  depends_on?: Record<string, { condition: string }>;
  deploy: {
    replicas?: number;
    resources: { limits: { cpus: string; memory: string; pids: number } };
  };
  healthcheck?: {
    test: string[];
    interval: string;
    timeout: string;
    retries?: number;
    start_period?: string;
  };
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  restart: string;
  stop_grace_period?: string;
};

export type ComposeFile = {
  services: Record<string, Service>;
  networks: Record<string, { internal?: boolean } | null>;
  volumes: Record<string, null>;
};

/**
 * Reads docker-compose.yml as `docker compose` does with these variables. Throws for a required
 * variable that is not set.
 */
export function readCompose(variables: Record<string, string>): ComposeFile {
  const filledIn = (text: string) =>
    text.replace(
      /\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}/g,
      (whole, name: string, kind?: string, other = '') => {
        if (whole === '$$') return '$';
        const value = variables[name];
        if (value) return value;
        if (kind !== '-') throw new Error(`${name} is not set: ${other}`);
        return other;
      },
    );
  const fill = (value: unknown): unknown => {
    if (typeof value === 'string') return filledIn(value);
    if (Array.isArray(value)) return value.map(fill);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, fill(child)]));
  };
  const { services, ...others } = fill(
    parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true }),
  ) as ComposeFile;
  // A variable without a value has its value outside of the file, or is not set.
  const passed = ([name, value]: [string, string | null]) => {
    const given = value ?? variables[name];
    return given === undefined ? [] : [[name, given]];
  };
  for (const service of Object.values(services))
    service.environment = Object.fromEntries(
      Object.entries(service.environment ?? {}).flatMap(passed),
    );
  return { services, ...others };
}

/**
 * Returns the arguments of `podman run` for a service: one container named `<project>-<service>`.
 * Throws for keys of the file that it does not know, so that none is ignored by mistake.
 */
export function runArgs(project: string, name: string, service: Service, image: string): string[] {
  const { build, image: own, profiles, depends_on, restart, ...rest } = service;
  const {
    command = [],
    environment = {},
    ports = [],
    volumes = [],
    networks,
    deploy,
    healthcheck,
    ...safety
  } = rest;
  const {
    read_only = false,
    cap_drop = [],
    security_opt = [],
    stop_grace_period,
    ...unknown
  } = safety;
  if (Object.keys(unknown).length > 0)
    throw new Error(`${name} has unknown keys: ${Object.keys(unknown).join(', ')}`);
  const { cpus, memory, pids } = deploy.resources.limits;
  const each = (option: string, values: string[]) => values.flatMap((value) => [option, value]);
  return [
    ...[
      'run',
      '--detach',
      '--name',
      `${project}-${name}`,
      '--cpus',
      cpus,
      '--memory',
      memory.toLowerCase(),
    ],
    ...['--pids-limit', String(pids), `--read-only=${read_only}`],
    ...each('--cap-drop', cap_drop),
    ...each(
      '--security-opt',
      security_opt.map((option) => option.replace(/:true$/, '')),
    ),
    ...each(
      '--env',
      Object.entries(environment).map(([key, value]) => `${key}=${value}`),
    ),
    ...each('--publish', ports),
    ...each(
      '--volume',
      volumes.map((volume) =>
        volume.startsWith('.') ? join(ROOT, volume) : `${project}-${volume}`,
      ),
    ),
    ...each(
      '--network',
      networks.map((network) => `${project}-${network}:alias=${name}`),
    ),
    // Podman has no keyword for a command without a shell.
    ...(healthcheck
      ? ['--health-cmd', JSON.stringify(healthcheck.test.filter((word) => word !== 'CMD'))]
      : []),
    ...(stop_grace_period
      ? ['--stop-timeout', String(Number.parseInt(stop_grace_period, 10))]
      : []),
    own ?? image,
    ...command,
  ];
}
