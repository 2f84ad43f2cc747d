import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { parse } from 'yaml';
import pkg from '../../package.json' with { type: 'json' };
import { ENVIRONMENT } from '../../src/operations/config/load.ts';
import { fileVariables, isSecret } from '../../src/operations/config/settings-file.ts';
import { configSchema, loadConfig } from '../../src/wiring/settings.ts';
import { blocksOf } from '../support/documents.ts';
import { BASE, CASES, FROM_VALUES, SECRETS, SECRETS_FOLDER } from './support/chart-cases.ts';
import { removedAfterTests } from './support/folders.ts';
import { installHelm, type KubernetesObject, parseObjects } from './support/helm.ts';

const ROOT = join(import.meta.dirname, '../..');
const CHART = join(ROOT, 'deploy/helm/dawatch');
const SECRET_VARIABLES = Object.keys(fileVariables(ENVIRONMENT)).map((name) =>
  name.replace(/_FILE$/, ''),
);
const SERVER_ONLY = [
  'DAWATCH_SERVICE_KEY',
  'DAWATCH_ADMIN_TOKEN',
  'DAWATCH_UPSTREAM_BEARER',
  'slack',
];

// The downloaded Helm runs only there.
describe.runIf(process.platform === 'linux' && process.arch === 'x64')('the Helm chart', () => {
  const folder = removedAfterTests();
  let helm: Awaited<ReturnType<typeof installHelm>>;
  beforeAll(async () => {
    helm = await installHelm(join(folder, 'helm'), inject('packages').npmCli);
  });

  function filesOf(...values: object[]): string[] {
    const into = mkdtempSync(join(folder, 'values-'));
    return values.flatMap((value, index) => {
      const file = join(into, `${index}.json`);
      writeFileSync(file, JSON.stringify(value));
      return ['--values', file];
    });
  }

  async function render(...values: object[]): Promise<KubernetesObject[]> {
    const { code, stdout, stderr } = await helm.template(CHART, filesOf(...values));
    expect(code, stderr).toBe(0);
    return parseObjects(stdout);
  }

  describe.each(CASES)('with $title', ({ values, kinds, existingSecret, litestream }) => {
    let objects: KubernetesObject[];
    beforeAll(async () => {
      objects = await render(BASE, ...values);
    });
    const all = (kind: string) => objects.filter((object) => object.kind === kind);
    const one = (kind: string) => {
      const [object, ...others] = all(kind);
      if (object === undefined || others.length > 0)
        throw new Error(`${1 + others.length} objects ${kind}`);
      return object;
    };
    const workloads = () => [...all('StatefulSet'), ...all('Deployment')];

    it('passes helm lint', async () => {
      const { code, stdout } = await helm.lint(CHART, filesOf(BASE, ...values));
      expect(code, stdout).toBe(0);
    });

    it('has the objects of the options, each valid and named once', async () => {
      expect(objects.map(({ kind }) => kind).toSorted()).toEqual(
        ['ConfigMap', 'Service', 'StatefulSet', ...kinds].toSorted(),
      );
      const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
      for (const { metadata } of objects) expect(metadata.name.length).toBeLessThanOrEqual(63);
      for (const object of objects) expect(await helm.problemsOf(object), object.kind).toEqual([]);
    });

    it('selects the pods, the service and the targets that are meant', () => {
      const labelsOf = (workload: KubernetesObject) => workload.spec.template.metadata.labels;
      const selects = (selector: Record<string, string>) =>
        workloads()
          .filter((workload) => matches(selector, labelsOf(workload)))
          .map(({ kind }) => kind);
      for (const { kind, spec } of workloads())
        expect(selects(spec.selector.matchLabels)).toEqual([kind]);
      const service = one('Service');
      expect(selects(service.spec.selector)).toEqual(['StatefulSet']);
      expect(one('StatefulSet').spec.serviceName).toBe(service.metadata.name);
      expect(
        all('PodDisruptionBudget')
          .flatMap(({ spec }) => selects(spec.selector.matchLabels))
          .toSorted(),
      ).toEqual(
        kinds.includes('PodDisruptionBudget')
          ? workloads()
              .map(({ kind }) => kind)
              .toSorted()
          : [],
      );
      for (const { spec } of all('NetworkPolicy')) {
        const [kind] = selects(spec.podSelector.matchLabels);
        expect(Boolean(spec.ingress)).toBe(kind === 'StatefulSet');
      }
      for (const { spec } of all('ServiceMonitor')) {
        expect(
          objects.filter(
            ({ kind, metadata }) =>
              kind === 'Service' && matches(spec.selector.matchLabels, metadata.labels),
          ),
        ).toEqual([service]);
        expect(service.spec.ports.map(({ name }: { name: string }) => name)).toContain(
          spec.endpoints[0].port,
        );
        expect(service.metadata.labels[spec.jobLabel]).toBe('dawatch');
      }
      for (const { spec } of all('Ingress')) {
        const { name, port } = spec.rules[0].http.paths[0].backend.service;
        expect([name, port.name]).toEqual([service.metadata.name, service.spec.ports[0].name]);
      }
    });

    it('runs the commands of the image with few privileges, and probes ports and paths that exist', () => {
      const { spec: pod } = one('StatefulSet').spec.template;
      const [server] = pod.containers;
      expect(server.args).toEqual(imageCommand());
      expect(one('StatefulSet').spec.replicas).toBe(1);
      const [port] = server.ports;
      expect(one('Service').spec.ports[0].targetPort).toBe(port.name);
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
        expect(server[probe].httpGet.port).toBe(port.name);
        expect(server[probe].httpGet.path).toBe(probe === 'readinessProbe' ? '/readyz' : '/livez');
      }
      const preStop = Number(server.lifecycle?.preStop.exec.command[1] ?? 0);
      const replication = litestream ? 30 : 0;
      const needed = preStop + 15 + 5 + replication;
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed);
      for (const { spec } of all('Deployment')) {
        const [worker] = spec.template.spec.containers;
        expect(worker.args.slice(-2)).toEqual(['main.js', 'worker']);
        for (const probe of ['livenessProbe', 'readinessProbe'])
          expect(worker[probe].exec.command).toEqual([...worker.args, '--check']);
        expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(15 + 5);
      }
      for (const { spec } of workloads()) {
        const {
          securityContext,
          automountServiceAccountToken,
          containers,
          initContainers = [],
        } = spec.template.spec;
        expect(securityContext).toMatchObject({
          runAsNonRoot: true,
          runAsUser: 1000,
          fsGroup: 1000,
        });
        expect(automountServiceAccountToken).toBe(false);
        for (const container of [...containers, ...initContainers]) {
          expect(container.securityContext).toEqual({
            readOnlyRootFilesystem: true,
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
          });
          expect(container.resources).toMatchObject({
            requests: expect.anything(),
            limits: expect.anything(),
          });
        }
      }
    });

    it('mounts what exists, and gives the server and the workers the same valid settings', () => {
      const given = workloads().map((workload) => settingsGivenTo(workload, one('ConfigMap')));
      const [server, worker] = given;
      expect(server?.config.server).toMatchObject({
        host: '0.0.0.0',
        port: one('StatefulSet').spec.template.spec.containers[0].ports[0].containerPort,
      });
      expect(server?.config.database).toBe('/data/dawatch.db');
      expect(server?.config.submissions.deadline_s).toBe(31_622_400);
      if (kinds.includes('Secret') || existingSecret) {
        expect(server?.mounted.toSorted()).toEqual(Object.keys(SECRETS).toSorted());
        expect(server?.config).toMatchObject({
          auth: { service_key: SECRETS.DAWATCH_SERVICE_KEY },
          upstreams: { second: { api_key: SECRETS['second-api-key'] } },
          channels: { ops: { url: SECRETS.slack } },
        });
      }
      if (worker === undefined) return;
      expect(worker.file).toBe(server?.file);
      expect(worker.mounted.toSorted()).toEqual(
        Object.keys(SECRETS)
          .filter((name) => !SERVER_ONLY.includes(name))
          .toSorted(),
      );
      const withoutServerOnly = structuredClone(server?.config);
      if (withoutServerOnly?.upstreams.default === undefined)
        throw new Error('no default upstream');
      withoutServerOnly.auth = {};
      delete withoutServerOnly.upstreams.default.bearer;
      Object.assign(withoutServerOnly.channels, { ops: { type: 'slack' } });
      expect(worker.config).toEqual(withoutServerOnly);
    });

    it.runIf(litestream)(
      'restores the ledger and checks its primary before the start, and replicates both beside the server',
      () => {
        const { spec: pod } = one('StatefulSet').spec.template;
        const [restore, restorePrimary, check, sidecar, ...others] = pod.initContainers;
        expect(others).toEqual([]);
        const text: string = one('ConfigMap').data['litestream.yml'];
        const config = parse(text);
        expect(Object.keys(config).toSorted()).toEqual(['dbs', 'logging', 'snapshot']);
        const [ledger, primary] = config.dbs;
        expect(config.dbs).toHaveLength(2);
        expect(Object.keys(ledger).toSorted()).toEqual(['path', 'replica']);
        expect(ledger.path).toBe(parse(one('ConfigMap').data['dawatch.yaml']).database);
        expect(primary).toEqual({
          path: `${ledger.path}.primary`,
          replica:
            litestream === 'url'
              ? { url: 's3://ledger/production/primary?endpoint=minio:9000' }
              : { ...ledger.replica, path: 'production/primary' },
        });
        expect(config.snapshot).toEqual({ interval: '24h', retention: '168h' });
        expect(restore.args.at(-1)).toBe(ledger.path);
        expect(restorePrimary.args.at(-1)).toBe(primary.path);
        expect(check.args.at(-1)).toBe(restorePrimary.args.at(-2));
        expect(mountOf(pod, check, '/tmp')).toEqual(mountOf(pod, restorePrimary, '/tmp'));
        const [server] = pod.containers;
        expect([check.image, check.env, check.volumeMounts]).toEqual([
          server.image,
          server.env,
          server.volumeMounts,
        ]);
        for (const { restartPolicy } of [restore, restorePrimary, check])
          expect(restartPolicy).toBeUndefined();
        const configFile = sidecar.args.at(-1);
        expect(sidecar).toMatchObject({
          restartPolicy: 'Always',
          args: ['replicate', '-config', configFile],
        });
        const secret = litestream === 'url' ? [{ secretRef: { name: 'object-store' } }] : undefined;
        for (const container of [restore, restorePrimary, sidecar]) {
          expect(container.envFrom).toEqual(secret);
          expect(container.args).toContain(configFile);
          const mount = mountOf(pod, container, configFile.replace(/\/[^/]*$/, ''));
          expect(mount.configMap.items).toEqual([
            { key: 'litestream.yml', path: 'litestream.yml' },
          ]);
        }
      },
    );

    /** Loads the settings as the container of the pod does, from copies of its mounted files. */
    function settingsGivenTo({ kind, spec }: KubernetesObject, configMap: KubernetesObject) {
      const { spec: pod } = spec.template;
      const [container] = pod.containers;
      for (const { name } of container.volumeMounts) expect(volumesOf(spec)).toContain(name);
      const copies = mkdtempSync(join(folder, 'mounts-'));
      const secrets = container.volumeMounts.some(
        ({ name }: { name: string }) => name === 'secrets',
      );
      const { secret } = secrets ? mountOf(pod, container, SECRETS_FOLDER) : {};
      const items: { key: string; path: string }[] = secret?.items ?? [];
      if (secrets) expect(secret.secretName).toBe(existingSecret ?? one('Secret').metadata.name);
      for (const { key, path } of items) writeFileSync(join(copies, path), SECRETS[key] ?? '');
      const env: Record<string, string> = Object.fromEntries(
        container.env.map(({ name, value }: { name: string; value: string }) => [
          name,
          value.replace(SECRETS_FOLDER, copies),
        ]),
      );
      const path = env.DAWATCH_CONFIG ?? '';
      const settings = mountOf(pod, container, path.replace(/\/[^/]*$/, '')).configMap;
      expect(settings).toEqual({
        name: configMap.metadata.name,
        items: [{ key: 'dawatch.yaml', path: 'dawatch.yaml' }],
      });
      for (const name of Object.keys(env))
        if (name.endsWith('_FILE')) expect(SECRET_VARIABLES).toContain(name.replace(/_FILE$/, ''));
      const file: string = configMap.data['dawatch.yaml'];
      const copy = join(copies, 'dawatch.yaml');
      writeFileSync(copy, file.replaceAll(SECRETS_FOLDER, copies));
      const user = kind === 'StatefulSet' ? 'server' : 'worker';
      const { config } = loadConfig({ env: { ...env, DAWATCH_CONFIG: copy }, user });
      return { config, file, mounted: items.map(({ key }) => key) };
    }
  });

  it.each<[string, object, string]>([
    [
      'an unknown value',
      { image: { pulPolicy: 'Always' } },
      'image: Additional property pulPolicy is not allowed',
    ],
    ['no image', { image: { repository: '' } }, 'image.repository is required'],
    [
      'no upstream',
      { settings: { upstreams: { default: { url: '' } } } },
      'settings.upstreams needs an upstream with a url',
    ],
    [
      'two sources of secrets',
      { ...FROM_VALUES, secrets: { values: SECRETS, existing: { name: 'a', keys: ['b'] } } },
      'exclude each other',
    ],
    [
      'workers without Redis',
      { workers: { enabled: true } },
      'workers.enabled requires the secret DAWATCH_REDIS_URL',
    ],
    [
      'Litestream without a replica',
      { litestream: { enabled: true } },
      'litestream.replica is required',
    ],
    [
      'a replica without paths',
      { litestream: { replica: { url: 'nats://nats:4222/ledger' } } },
      'litestream.replica.url: Must not validate the schema',
    ],
    [
      'a replica with a password',
      { litestream: { replica: { url: 'sftp://user:password@host/ledger' } } },
      'litestream.replica.url: Must not validate the schema',
    ],
    [
      'another port than that of the probes',
      { extraEnv: [{ name: 'DAWATCH_PORT', value: '9000' }] },
      'DAWATCH_PORT is set by the chart',
    ],
    ['an ingress without a host', { ingress: { enabled: true } }, 'ingress.host is required'],
  ])('refuses %s', async (_, values, message) => {
    const { code, stderr } = await helm.template(CHART, filesOf(BASE, values));
    expect(code).toBe(1);
    expect(stderr).toContain(message);
  });

  it.each(
    blocksOf('docs/kubernetes.md')
      .filter(({ language }) => language === 'yaml')
      .map(({ line, text }): [number, object] => [line, parse(text)]),
  )('accepts the values in line %i of docs/kubernetes.md', async (_line, values) => {
    expect(await render(BASE, values)).not.toEqual([]);
  });

  it.each([
    ...['auth.service_key', 'upstreams.second.bearer', 'oidc.client_secret'],
    ...['redis.url', 'heartbeat.url', 'channels.ops.url', 'channels.ops.smtp_url'],
  ])('refuses the secret %s in the settings, which are no secret', async (path) => {
    expect(isSecret(path)).toBe(true);
    const settings = path.split('.').reduceRight<unknown>((value, key) => ({ [key]: value }), 'x');
    const { code, stderr } = await helm.template(CHART, filesOf(BASE, { settings }));
    expect(code).toBe(1);
    expect(stderr).toContain(`settings.${path} is a secret`);
    expect(stderr).toContain(`settings.${path}_file`);
  });

  it('refuses versions of Kubernetes without sidecars', async () => {
    const { code, stderr } = await helm.template(CHART, filesOf(BASE), '1.28.0');
    expect(code).toBe(1);
    expect(stderr).toContain('requires kubeVersion: >=1.29.0-0');
  });

  it('is packaged for a release with the image of that release as its default', async () => {
    const image = 'ghcr.io/owner/dawatch';
    const path = `${join(folder, 'helm')}:${process.env.PATH}`;
    execFileSync(join(ROOT, '.ci/release/package-chart.sh'), [image, folder], {
      env: { HOME: folder, PATH: path },
    });
    const { code, stdout, stderr } = await helm.template(
      join(folder, `dawatch-${pkg.version}.tgz`),
      filesOf({ settings: BASE.settings }),
    );
    expect(code, stderr).toBe(0);
    const server = parseObjects(stdout).find(({ kind }) => kind === 'StatefulSet');
    expect(server?.spec.template.spec.containers[0].image).toBe(`${image}:${pkg.version}`);
  });
});

describe('the files of the chart', () => {
  const read = (file: string) => readFileSync(join(CHART, file), 'utf8');
  const schema = JSON.parse(read('values.schema.json'));

  it('have a schema with the sections of the settings and the secrets of dawatch', () => {
    const { settings, secrets } = schema.properties;
    expect(Object.keys(settings.properties).toSorted()).toEqual(
      Object.keys(configSchema.shape).toSorted(),
    );
    expect(Object.keys(secrets.properties.values.properties).toSorted()).toEqual(
      SECRET_VARIABLES.toSorted(),
    );
    const keys = new RegExp(secrets.properties.existing.properties.keys.items.pattern);
    for (const name of SECRET_VARIABLES) expect(name).toMatch(keys);
  });

  it('document every value of the schema in values.yaml', () => {
    const values = parse(read('values.yaml'));
    const open = ['settings', 'secrets.values', 'litestream.replica.', 'global'];
    const missing = namesIn(schema).filter(
      (path) => !open.some((prefix) => path.startsWith(prefix)) && !has(values, path),
    );
    expect(missing).toEqual([]);
  });

  function namesIn(node: { properties?: Record<string, object> }, prefix = ''): string[] {
    return Object.entries(node.properties ?? {}).flatMap(([name, child]) => [
      `${prefix}${name}`,
      ...namesIn(child, `${prefix}${name}.`),
    ]);
  }

  function has(tree: unknown, path: string): boolean {
    return path.split('.').reduce<unknown>((node, key) => Object(node)[key], tree) !== undefined;
  }
});

/** The command that the Dockerfile gives the image. */
function imageCommand(): string[] {
  const command = /^CMD (\[.*\])$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))?.[1];
  return JSON.parse(command ?? '[]');
}

function matches(selector: Record<string, string>, labels: Record<string, string>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

function volumesOf({ template, volumeClaimTemplates = [] }: KubernetesObject['spec']): string[] {
  const claims = volumeClaimTemplates.map(({ metadata }: KubernetesObject) => metadata.name);
  return [...template.spec.volumes.map(({ name }: { name: string }) => name), ...claims];
}

/** Returns the volume that the container mounts at the path. */
function mountOf(pod: KubernetesObject['spec'], container: KubernetesObject, path: string) {
  const mount = container.volumeMounts.find(
    ({ mountPath }: { mountPath: string }) => mountPath === path,
  );
  return pod.volumes.find(({ name }: { name: string }) => name === mount?.name);
}
