import { describe, expect, it } from 'vitest';
import { type TracingProblem, tracingSettings } from '../../src/operations/config/tracing.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

function read(env: Record<string, string>) {
  const problems: TracingProblem[] = [];
  return { settings: tracingSettings(env, (problem) => problems.push(problem)), problems };
}

describe('tracing is off', () => {
  it.each([
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' },
    { OTEL_SERVICE_NAME: 'dawatch' },
    { ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' },
    { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_EXPORTER: 'none' },
  ])('without a warning, with %j', (env) => {
    expect(read(env as Record<string, string>)).toEqual({ settings: undefined, problems: [] });
  });
});

it('needs only an endpoint', () => {
  expect(read(ENDPOINT)).toEqual({
    settings: {
      url: 'http://collector:4318/v1/traces',
      headers: {},
      timeoutMs: 10_000,
      resource: { 'service.name': 'dawatch' },
      sampleRatio: 1,
      followsCaller: true,
    },
    problems: [],
  });
});

it.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://a/otlp/' }, { url: 'https://a/otlp/v1/traces' }],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://b/own' }, { url: 'http://b/own' }],
  [
    { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'a=1, X-B = c%3Dd%2C' },
    { headers: { a: '1', 'x-b': 'c=d,' } },
  ],
  [
    { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'a=1', OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'b=2' },
    { headers: { b: '2' } },
  ],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_TIMEOUT: '500' }, { timeoutMs: 500 }],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, {}],
  [
    {
      ...ENDPOINT,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    },
    {},
  ],
  [
    {
      ...ENDPOINT,
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=x,deployment.environment.name=test',
      OTEL_SERVICE_NAME: 'y',
    },
    { resource: { 'service.name': 'y', 'deployment.environment.name': 'test' } },
  ],
  [
    { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'always_on' },
    { sampleRatio: 1, followsCaller: false },
  ],
  [
    { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'parentbased_always_off' },
    { sampleRatio: 0, followsCaller: true },
  ],
  [
    { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' },
    { sampleRatio: 0.1, followsCaller: false },
  ],
])('reads %j', (env, expected) => {
  expect(read(env as Record<string, string>)).toMatchObject({ settings: expected, problems: [] });
});

it.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:secret@collector'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'secret'],
  ['OTEL_TRACES_EXPORTER', 'secret'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'secret'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'secret'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%secret'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a(=secret'],
  ['OTEL_EXPORTER_OTLP_TIMEOUT', '0'],
  ['OTEL_EXPORTER_OTLP_TIMEOUT', 'secret'],
  ['OTEL_RESOURCE_ATTRIBUTES', 'secret'],
  ['OTEL_TRACES_SAMPLER', 'secret'],
])('is off with %s=%s, and one warning names only the variable', (variable, text) => {
  const { settings, problems } = read({ ...ENDPOINT, [variable]: text });
  expect(settings).toBeUndefined();
  expect(problems).toEqual([{ variable, reason: expect.stringMatching(/^must be (?!.*secret)/) }]);
});

it('is off with a sampling ratio above 1', () => {
  const sampler = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' };
  const variable = 'OTEL_TRACES_SAMPLER_ARG';
  expect(read({ ...ENDPOINT, ...sampler })).toMatchObject({
    settings: undefined,
    problems: [{ variable }],
  });
});
