import { randomBytes } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import {
  formatTraceparent,
  parseTraceparent,
  type Span,
  type SpanAttributes,
  type SpanKind,
  type SpanStart,
  type Tracer,
} from '../submissions/tracing.ts';

export type TracerSettings = {
  /** The complete URL for traces. */
  url: string;
  /** Sent with each request; values are secret. */
  headers: Record<string, string>;
  /** Attributes of this process, with service.name. */
  resource: Record<string, string>;
};

/**
 * A variable that is invalid. The reason does not quote its value, which may be secret.
 */
export type TracingProblem = { variable: string; reason: string };

/**
 * Returns the settings of OpenTelemetry from its own variables. Returns undefined if tracing is
 * off: there is no endpoint, a variable disables tracing, or a variable is unusable, which is
 * reported to `onProblem`. Clusters set these variables for all their containers, so an unusable
 * variable does not prevent a start.
 */
export function tracingSettings(
  env: Record<string, string | undefined>,
  onProblem: (problem: TracingProblem) => void,
): TracerSettings | undefined {
  const value = (name: string) => env[name]?.trim() || undefined;
  const isDisabled = value('OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  if (isDisabled || value('OTEL_TRACES_EXPORTER') === 'none') return undefined;
  const complete = value('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const base = value('OTEL_EXPORTER_OTLP_ENDPOINT');
  const endpoint = complete ?? base?.replace(/\/?$/, '/v1/traces');
  if (endpoint === undefined) return undefined;
  const url = URL.parse(endpoint);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
    const variable = complete
      ? 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
      : 'OTEL_EXPORTER_OTLP_ENDPOINT';
    onProblem({ variable, reason: 'must be an http:// or https:// URL without credentials' });
    return undefined;
  }
  const headers = pairsOf(value('OTEL_EXPORTER_OTLP_HEADERS'));
  const attributes = pairsOf(value('OTEL_RESOURCE_ATTRIBUTES'));
  if (!headers || !attributes) {
    const variable = headers ? 'OTEL_RESOURCE_ATTRIBUTES' : 'OTEL_EXPORTER_OTLP_HEADERS';
    const reason =
      'must be a list of name=value, with commas in between and percent-encoded values';
    onProblem({ variable, reason });
    return undefined;
  }
  const name = value('OTEL_SERVICE_NAME') ?? attributes['service.name'] ?? 'dawatch';
  return { url: url.href, headers, resource: { ...attributes, 'service.name': name } };
}

/**
 * Parses `name=value,name=value` with percent-encoded values. Returns undefined if the text has
 * another form, or if a name or value cannot be used in a header.
 */
function pairsOf(text = ''): Record<string, string> | undefined {
  const pairs: Record<string, string> = {};
  for (const pair of text.split(',').filter((one) => one.trim() !== '')) {
    const [, key, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    if (key === undefined || value === undefined) return undefined;
    try {
      pairs[key] = decodeURIComponent(value);
      new Headers(pairs);
    } catch {
      return undefined;
    }
  }
  return pairs;
}

export type ClosableTracer = Tracer & {
  /** Exports what is left, for at most `limitMs` and at most 3 s. Later spans are dropped. */
  close(limitMs: number): Promise<void>;
};

const EXPORT_INTERVAL_MS = 5_000;
const EXPORT_LIMIT_MS = 10_000;
/** Maximum number of waiting spans, to limit memory. Further ones are dropped. */
const MAX_WAITING = 4_096;
/** Limit for the last export, so that a receiver that does not respond does not delay a restart. */
const MAX_CLOSE_MS = 3_000;

const UNSAMPLED: Span = { traceparent: undefined, end: () => undefined };

/**
 * Collects ended spans and exports them together every 5 s. Spans that the receiver does not accept
 * are dropped.
 */
export function createTracer(deps: {
  settings: TracerSettings;
  clock: Clock;
  version: string;
  onDropped: (dropped: { spans: number; reason: string }) => void;
}): ClosableTracer {
  const { settings, clock, version, onDropped } = deps;
  let waiting: EndedSpan[] = [];
  let dropped = 0;
  let cancelTimer: (() => void) | undefined;
  let exporting: Promise<void> = Promise.resolve();
  let isClosed = false;

  function add(span: EndedSpan): void {
    if (isClosed) return;
    if (waiting.length >= MAX_WAITING) dropped += 1;
    else waiting.push(span);
    cancelTimer ??= clock.after(EXPORT_INTERVAL_MS, () => {
      exporting = exporting.then(() => exportWaiting(EXPORT_LIMIT_MS));
    });
  }

  async function exportWaiting(limitMs: number): Promise<void> {
    cancelTimer?.();
    cancelTimer = undefined;
    const spans = waiting;
    waiting = [];
    if (dropped > 0) onDropped({ spans: dropped, reason: 'more spans ended than are kept' });
    dropped = 0;
    if (spans.length === 0) return;
    const reason = await failureOfExport(spans, { settings, version, limitMs });
    if (reason !== undefined) onDropped({ spans: spans.length, reason });
  }

  return {
    start({ name, kind, parent, at = clock.now(), attributes = {} }: SpanStart): Span {
      const from = parseTraceparent(parent);
      if (from?.isSampled === false) return UNSAMPLED;
      const traceId = from?.traceId ?? randomBytes(16).toString('hex');
      const spanId = randomBytes(8).toString('hex');
      return {
        traceparent: formatTraceparent({ traceId, spanId, isSampled: true }),
        end({ at: endedAt = clock.now(), error, attributes: more } = {}) {
          add({
            ...{ traceId, spanId, parentId: from?.spanId, name, kind, error },
            startedAt: at,
            endedAt: Math.max(at, endedAt),
            attributes: { ...attributes, ...more },
          });
        },
      };
    },
    async close(limitMs) {
      isClosed = true;
      const limit = Math.min(limitMs, MAX_CLOSE_MS);
      const last = exporting.then(() => exportWaiting(limit));
      const late = Promise.withResolvers<void>();
      const cancelLimit = clock.after(limit, late.resolve);
      await Promise.race([last, late.promise]);
      cancelLimit();
    },
  };
}

/** A span that has ended. Times are epoch milliseconds. */
type EndedSpan = {
  traceId: string;
  spanId: string;
  parentId: string | undefined;
  name: string;
  kind: SpanKind;
  startedAt: number;
  endedAt: number;
  error: string | undefined;
  attributes: SpanAttributes;
};

/** Values of the OTLP enumerations. */
const KINDS: Record<SpanKind, number> = { server: 2, client: 3, consumer: 5 };
const STATUS_ERROR = 2;

/**
 * Sends spans by OTLP over HTTP as JSON. Returns why the receiver did not accept them; undefined if
 * it did. Never rejects.
 */
async function failureOfExport(
  spans: readonly EndedSpan[],
  deps: { settings: TracerSettings; version: string; limitMs: number },
): Promise<string | undefined> {
  const { settings, version, limitMs } = deps;
  const resource = {
    attributes: toAttributes({ 'service.version': version, ...settings.resource }),
  };
  const scope = { name: 'dawatch', version };
  const scopeSpans = [{ scope, spans: spans.map(toSpan) }];
  try {
    const response = await fetch(settings.url, {
      method: 'POST',
      headers: {
        'user-agent': `dawatch/${version}`,
        ...settings.headers,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] }),
      redirect: 'error',
      signal: AbortSignal.timeout(limitMs),
    });
    await response.body?.cancel();
    return response.ok ? undefined : `the receiver of traces responded with ${response.status}`;
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    return `the receiver of traces ${isLate ? 'did not respond in time' : 'cannot be reached'}`;
  }
}

function toSpan(span: EndedSpan) {
  const { traceId, spanId, parentId, name, kind, startedAt, endedAt, error, attributes } = span;
  return {
    traceId,
    spanId,
    ...(parentId !== undefined && { parentSpanId: parentId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: toAttributes(attributes),
    status: error === undefined ? {} : { code: STATUS_ERROR, message: error },
    flags: 1,
  };
}

function toAttributes(attributes: SpanAttributes) {
  return Object.entries(attributes).flatMap(([key, value]) => {
    if (value === undefined) return [];
    const isText = typeof value === 'string';
    return [{ key, value: isText ? { stringValue: value } : { intValue: String(value) } }];
  });
}

function nanoseconds(ms: number): string {
  return `${Math.round(ms)}000000`;
}
