import type { SpanAttributes, SpanKind, TraceContext } from '../../submissions/tracing.ts';

export type OtlpSettings = {
  /** The complete URL for traces. */
  url: string;
  /** Sent with each request; values are secret. */
  headers: Record<string, string>;
  timeoutMs: number;
  /** Attributes of this process, with service.name. */
  resource: Record<string, string>;
};

/** A span that has ended. Times are epoch milliseconds. */
export type EndedSpan = {
  traceId: string;
  spanId: string;
  parentId: string | undefined;
  name: string;
  kind: SpanKind;
  links: readonly TraceContext[];
  startedAt: number;
  endedAt: number;
  error: string | undefined;
  attributes: SpanAttributes;
};

/** retry: the receiver may accept the same spans later. refused: it never will. */
type ExportResult = { kind: 'exported' } | { kind: 'retry' | 'refused'; reason: string };

/** Values of the OTLP enumerations. */
const KINDS: Record<SpanKind, number> = { internal: 1, server: 2, client: 3, consumer: 5 };
const STATUS_ERROR = 2;
/** Statuses after which clients of OTLP retry. */
const RETRIED = [429, 502, 503, 504];

/** Sends spans by OTLP over HTTP as JSON. Never rejects. */
export async function exportSpans(
  spans: readonly EndedSpan[],
  deps: { settings: OtlpSettings; version: string; signal: AbortSignal },
): Promise<ExportResult> {
  const { url, headers, timeoutMs } = deps.settings;
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'user-agent': `dawatch/${deps.version}`,
        ...headers,
        'content-type': 'application/json',
      },
      body: JSON.stringify(toExportRequest(spans, deps)),
      redirect: 'error',
      signal: AbortSignal.any([deps.signal, AbortSignal.timeout(timeoutMs)]),
    });
    await response.body?.cancel();
    if (response.ok) return { kind: 'exported' };
    const reason = `the receiver of traces responded with ${response.status}`;
    return { kind: RETRIED.includes(response.status) ? 'retry' : 'refused', reason };
  } catch (error) {
    const isLate = error instanceof Error && ['TimeoutError', 'AbortError'].includes(error.name);
    const reason = isLate ? 'did not respond in time' : 'cannot be reached';
    return { kind: 'retry', reason: `the receiver of traces ${reason}` };
  }
}

/** Returns an ExportTraceServiceRequest in the JSON encoding of OTLP. */
function toExportRequest(
  spans: readonly EndedSpan[],
  { settings, version }: { settings: OtlpSettings; version: string },
) {
  const resource = {
    attributes: toAttributes({ 'service.version': version, ...settings.resource }),
  };
  const scope = { name: 'dawatch', version };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(toSpan) }] }] };
}

function toSpan({
  traceId,
  spanId,
  parentId,
  name,
  kind,
  links,
  startedAt,
  endedAt,
  error,
  attributes,
}: EndedSpan) {
  return {
    traceId,
    spanId,
    ...(parentId !== undefined && { parentSpanId: parentId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: toAttributes(attributes),
    links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
    status: error === undefined ? {} : { code: STATUS_ERROR, message: error },
    flags: 1,
  };
}

function toAttributes(attributes: SpanAttributes) {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: toAny(value) }],
  );
}

function toAny(value: string | number | boolean): Record<string, unknown> {
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'string') return { stringValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

function nanoseconds(ms: number): string {
  return `${Math.round(ms)}000000`;
}
