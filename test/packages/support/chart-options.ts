export const SECRETS_FOLDER = '/run/secrets/dawatch';

/** The value of each secret in the tests: those with a variable, and two files for the settings. */
export const SECRETS: Record<string, string> = {
  DAWATCH_API_KEY: 'a-service-key-for-tests',
  DAWATCH_ADMIN_TOKEN: 'an-admin-token-for-tests',
  DAWATCH_UPSTREAM_API_KEY: 'key-1',
  DAWATCH_UPSTREAM_BEARER: 'bearer-1',
  DAWATCH_REDIS_URL: 'redis://:password@redis:6379',
  DAWATCH_REDIS_SECRET: 'a-secret-of-at-least-32-characters',
  DAWATCH_REDIS_PREVIOUS_SECRET: 'another-one-of-at-least-32-characters',
  'second-api-key': 'key-2',
  slack: 'https://hooks.slack.example/services/1',
};

/** The smallest valid values, with a setting of every form. */
export const BASE = {
  image: { repository: 'registry.example/dawatch' },
  settings: {
    server: { shutdown_s: 20.5, trusted_proxies: ['10.0.0.0/8'] },
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
export const workers = (autoscaling: object) => ({ workers: { enabled: true, autoscaling } });
export const KEDA = workers({ kind: 'keda', prometheusAddress: 'http://prometheus:9090' });
const HPA = workers({ kind: 'hpa' });
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

/** The values of each variant of each option. Workers need a secret, so they are one option. */
export const OPTIONS: Record<string, Record<string, object>> = {
  processes: {
    'server without secrets': {},
    server: FROM_VALUES,
    'server, existing secret': FROM_EXISTING,
    workers: { ...FROM_VALUES, ...workers({ kind: 'none' }) },
    'workers, existing secret': { ...FROM_EXISTING, ...workers({ kind: 'none' }) },
    keda: { ...FROM_VALUES, ...KEDA },
    'keda, existing secret': { ...FROM_EXISTING, ...KEDA },
    hpa: { ...FROM_VALUES, ...HPA },
    'hpa, existing secret': { ...FROM_EXISTING, ...HPA },
  },
  litestream: {
    off: {},
    credentials: {
      litestream: {
        enabled: true,
        replica: { url: 's3://ledger/production?endpoint=minio:9000' },
        credentialsSecret: 'object-store',
      },
    },
    identity: {
      litestream: {
        enabled: true,
        replica: { type: 's3', bucket: 'ledger', path: 'production', region: 'eu-central-1' },
      },
      serviceAccount: {
        annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/ledger' },
      },
    },
  },
  ingress: {
    off: {},
    on: { ingress: { enabled: true, host: 'dawatch.example' } },
    tls: {
      ingress: {
        enabled: true,
        host: 'dawatch.example',
        tlsSecret: 'certificate',
        className: 'nginx',
      },
    },
  },
  networkPolicy: {
    off: {},
    open: { networkPolicy: { enabled: true } },
    restricted: {
      networkPolicy: {
        enabled: true,
        ingressFrom: [{ podSelector: { matchLabels: { app: 'ingress' } } }],
      },
    },
  },
  serviceMonitor: {
    off: {},
    on: { serviceMonitor: { enabled: true, labels: { release: 'prometheus' } } },
  },
  podDisruptionBudget: {
    off: {},
    on: { podDisruptionBudget: { enabled: true, workers: { maxUnavailable: '50%' } } },
  },
  service: {
    internal: {},
    'load balancer': {
      service: {
        type: 'LoadBalancer',
        port: 80,
        externalTrafficPolicy: 'Local',
        annotations: { a: 'b' },
      },
    },
  },
  placement: {
    default: {},
    set: {
      server: PLACEMENT,
      workers: PLACEMENT,
      extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/tmp/ca.crt' }],
      image: { pullSecrets: ['registry'], digest: `sha256:${'0'.repeat(64)}` },
    },
  },
  storage: {
    default: {},
    class: {
      server: {
        storage: { className: 'ssd', accessMode: 'ReadWriteOnce', size: '100Gi' },
        preStopSeconds: 0,
      },
    },
  },
  names: {
    default: {},
    long: { fullnameOverride: 'a'.repeat(70), serviceAccount: { name: 'existing' } },
  },
};
