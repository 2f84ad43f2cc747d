export const SECRETS_FOLDER = '/run/secrets/dawatch';

/** The value of each secret in the tests: those with a variable, and two files for the settings. */
export const SECRETS: Record<string, string> = {
  DAWATCH_SERVICE_KEY: 'a-service-key-for-tests-0123456789',
  DAWATCH_ADMIN_TOKEN: 'an-admin-token-for-tests-0123456789',
  DAWATCH_UPSTREAM_API_KEY: 'key-1',
  DAWATCH_UPSTREAM_BEARER: 'bearer-1',
  DAWATCH_REDIS_URL: 'redis://:password@redis:6379',
  'second-api-key': 'key-2',
  slack: 'https://hooks.slack.example/services/1',
};

/** The smallest valid values, with a setting of every form. */
export const BASE = {
  image: { repository: 'registry.example/dawatch' },
  settings: {
    server: { trusted_proxies: ['10.0.0.0/8'] },
    submissions: { deadline_s: 31_622_400 },
    upstreams: {
      default: { url: 'https://upstream.example', budget: { requests: 15, per_s: 60 } },
    },
  },
};
/** Settings that refer to the secrets without a variable. */
const SETTINGS_WITH_FILES = {
  upstreams: {
    second: { url: 'https://second.example', api_key_file: `${SECRETS_FOLDER}/second-api-key` },
  },
  channels: { ops: { type: 'slack', url_file: `${SECRETS_FOLDER}/slack` } },
  routes: [{ types: ['alert.*'], channels: ['ops'] }],
};
export const FROM_VALUES = { secrets: { values: SECRETS }, settings: SETTINGS_WITH_FILES };
const FROM_EXISTING = {
  secrets: { existing: { name: 'our-secret', keys: Object.keys(SECRETS) } },
  settings: SETTINGS_WITH_FILES,
};
const WORKERS = { workers: { enabled: true } };
const PLACEMENT = {
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' }],
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
  },
  priorityClassName: 'high',
  podAnnotations: { team: 'data' },
  podLabels: { team: 'data' },
};

const LITESTREAM_URL = {
  litestream: {
    enabled: true,
    replica: { url: 's3://ledger/production?endpoint=minio:9000' },
    credentialsSecret: 'object-store',
  },
};
const LITESTREAM_FIELDS = {
  litestream: {
    enabled: true,
    replica: { type: 's3', bucket: 'ledger', path: 'production', region: 'eu-central-1' },
  },
  serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/ledger' } },
};
/** What a cluster adds around the processes. */
const SURROUNDINGS = {
  ingress: { enabled: true, host: 'dawatch.example' },
  networkPolicy: { enabled: true },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  podDisruptionBudget: { enabled: true, workers: { maxUnavailable: '50%' } },
};
const PLACED = {
  server: PLACEMENT,
  workers: PLACEMENT,
  extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/tmp/ca.crt' }],
  image: { pullSecrets: ['registry'], digest: `sha256:${'0'.repeat(64)}` },
};

/**
 * A set of values that a team might have, and what the chart makes of them: the objects beside
 * ConfigMap, Service and StatefulSet.
 */
export type ChartCase = {
  title: string;
  values: readonly object[];
  kinds: readonly string[];
  existingSecret?: string;
  litestream?: 'url' | 'fields';
};

export const CASES: readonly ChartCase[] = [
  { title: 'the smallest values', values: [], kinds: ['ServiceAccount'] },
  {
    title: 'a server with everything around it',
    values: [FROM_VALUES, LITESTREAM_URL, SURROUNDINGS, PLACED],
    kinds: [
      ...['ServiceAccount', 'Secret', 'Ingress', 'NetworkPolicy', 'ServiceMonitor'],
      'PodDisruptionBudget',
    ],
    litestream: 'url',
  },
  {
    title: 'workers, an existing secret and everything around them',
    values: [
      ...[FROM_EXISTING, WORKERS, LITESTREAM_FIELDS, SURROUNDINGS, PLACED],
      {
        ingress: { tlsSecret: 'certificate', className: 'nginx' },
        serviceMonitor: { authorization: { credentials: { name: 'metrics', key: 'token' } } },
        networkPolicy: { ingressFrom: [{ podSelector: { matchLabels: { app: 'ingress' } } }] },
      },
    ],
    kinds: [
      ...['ServiceAccount', 'Deployment', 'Ingress', 'ServiceMonitor'],
      ...['NetworkPolicy', 'NetworkPolicy', 'PodDisruptionBudget', 'PodDisruptionBudget'],
    ],
    existingSecret: 'our-secret',
    litestream: 'fields',
  },
  {
    title: 'workers with long names, a load balancer and a class of storage',
    values: [
      FROM_VALUES,
      WORKERS,
      {
        service: { type: 'LoadBalancer', port: 80, annotations: { a: 'b' } },
        server: { storage: { className: 'ssd', size: '100Gi' }, preStopSeconds: 0 },
        fullnameOverride: 'a'.repeat(70),
        serviceAccount: { name: 'existing' },
      },
    ],
    kinds: ['Secret', 'Deployment'],
  },
];
