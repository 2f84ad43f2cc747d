import type { TracerSettings } from '../tracing/tracer.ts';

type Environment = Record<string, string | undefined>;

/** Both values send JSON: receivers of protobuf accept it at the same URL. */
const PROTOCOLS = ['http/json', 'http/protobuf'];
const TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 600_000;

/**
 * A variable that is invalid or not supported. The reason does not quote its value, which may be
 * secret.
 */
export type TracingProblem = { variable: string; reason: string };

/**
 * Returns the settings of OpenTelemetry from its own variables. Returns undefined if tracing is
 * off: there is no endpoint, a variable disables tracing, or a variable is unusable, which is
 * reported to `onProblem`. Clusters set these variables for all their containers, so an unusable
 * variable does not prevent a start.
 */
export function tracingSettings(
  env: Environment,
  onProblem: (problem: TracingProblem) => void,
): TracerSettings | undefined {
  try {
    return settingsFrom(env);
  } catch (error) {
    if (!(error instanceof UnusableVariable)) throw error;
    onProblem(error.problem);
    return undefined;
  }
}

class UnusableVariable extends Error {
  readonly problem: TracingProblem;

  constructor(variable: string, reason: string) {
    super(`${variable} ${reason}`);
    this.problem = { variable, reason };
  }
}

/** Throws an UnusableVariable. */
function settingsFrom(env: Environment): TracerSettings | undefined {
  const value = (name: string) => env[name]?.trim() || undefined;
  const ofTraces = (name: string) =>
    [`OTEL_EXPORTER_OTLP_TRACES_${name}`, `OTEL_EXPORTER_OTLP_${name}`].find(
      (one) => value(one) !== undefined,
    );
  const endpoint = ofTraces('ENDPOINT');
  if (endpoint === undefined || value('OTEL_SDK_DISABLED')?.toLowerCase() === 'true')
    return undefined;
  const exporter = value('OTEL_TRACES_EXPORTER') ?? 'otlp';
  if (exporter === 'none') return undefined;
  if (exporter !== 'otlp')
    throw new UnusableVariable('OTEL_TRACES_EXPORTER', 'must be otlp or none');
  const protocol = ofTraces('PROTOCOL');
  if (protocol !== undefined && !PROTOCOLS.includes(value(protocol) ?? ''))
    throw new UnusableVariable(
      protocol,
      'must be http/json: gRPC is not supported, and receivers accept HTTP at port 4318',
    );
  const headers = ofTraces('HEADERS');
  const timeout = ofTraces('TIMEOUT');
  return {
    url: urlOf(endpoint, value(endpoint) ?? ''),
    headers:
      headers === undefined ? {} : headersOf(headers, pairsOf(headers, value(headers) ?? '')),
    timeoutMs: timeout === undefined ? TIMEOUT_MS : milliseconds(timeout, value(timeout) ?? ''),
    resource: {
      'service.name': 'dawatch',
      ...pairsOf('OTEL_RESOURCE_ATTRIBUTES', value('OTEL_RESOURCE_ATTRIBUTES') ?? ''),
      ...(value('OTEL_SERVICE_NAME') !== undefined && {
        'service.name': value('OTEL_SERVICE_NAME') as string,
      }),
    },
    ...samplerOf(
      value('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on',
      value('OTEL_TRACES_SAMPLER_ARG'),
    ),
  };
}

/** The endpoint of all signals is a base, that of traces is used as it is. */
function urlOf(name: string, text: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw new UnusableVariable(name, 'must be an http:// or https:// URL without credentials');
  if (name !== 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
    url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`;
  return url.href;
}

/** Parses `name=value,name=value` with percent-encoded values. */
function pairsOf(name: string, text: string): Record<string, string> {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  return Object.fromEntries(
    pairs.map((pair): [string, string] => {
      const [, key, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
      try {
        if (key !== undefined && value !== undefined) return [key, decodeURIComponent(value)];
      } catch {}
      throw new UnusableVariable(
        name,
        'must be a list of name=value, with commas in between and percent-encoded values',
      );
    }),
  );
}

function headersOf(name: string, pairs: Record<string, string>): Record<string, string> {
  try {
    return Object.fromEntries(new Headers(pairs));
  } catch {
    throw new UnusableVariable(name, 'must be names and values of HTTP headers');
  }
}

function milliseconds(name: string, text: string): number {
  const ms = Number(text);
  if (Number.isInteger(ms) && ms > 0 && ms <= MAX_TIMEOUT_MS) return ms;
  throw new UnusableVariable(name, `must be whole milliseconds from 1 to ${MAX_TIMEOUT_MS}`);
}

function samplerOf(
  sampler: string,
  argument: string | undefined,
): Pick<TracerSettings, 'sampleRatio' | 'followsCaller'> {
  const followsCaller = sampler.startsWith('parentbased_');
  switch (sampler.replace('parentbased_', '')) {
    case 'always_on':
      return { sampleRatio: 1, followsCaller };
    case 'always_off':
      return { sampleRatio: 0, followsCaller };
    case 'traceidratio': {
      const sampleRatio = Number(argument ?? 1);
      if (sampleRatio >= 0 && sampleRatio <= 1) return { sampleRatio, followsCaller };
      throw new UnusableVariable('OTEL_TRACES_SAMPLER_ARG', 'must be a number from 0 to 1');
    }
    default:
      throw new UnusableVariable(
        'OTEL_TRACES_SAMPLER',
        'must be always_on, always_off or traceidratio, alone or after parentbased_',
      );
  }
}
