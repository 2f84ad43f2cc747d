import { randomBytes } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import {
  formatTraceparent,
  parseTraceparent,
  type Span,
  type SpanAttributes,
  type SpanKind,
  type SpanStart,
  type TraceContext,
  type Tracer,
} from '../../submissions/tracing.ts';

export type TracerSettings = OtlpSettings & {
  /** Share of the traces that begin here which are sampled, 0 to 1. */
  sampleRatio: number;
  /**
   * Whether a trace that began at a caller is sampled if the caller samples it; otherwise
   * `sampleRatio` decides, too.
   */
  followsCaller: boolean;
};

export type ClosableTracer = Tracer & {
  /**
   * Exports what is left, for at most `limitMs` and at most 3 s. Spans that end later are dropped.
   */
  close(limitMs: number): Promise<void>;
};

const EXPORT_INTERVAL_MS = 5_000;
const MAX_BATCH = 512;
/**
 * Maximum number of waiting spans. Further spans are dropped while the receiver is unavailable, to
 * limit memory.
 */
const MAX_WAITING = 4_096;
/** Limit for the last export, so that a receiver that does not respond does not delay a restart. */
const MAX_CLOSE_MS = 3_000;

const UNSAMPLED: Span = { traceparent: undefined, end: () => undefined };

/**
 * Samples spans, collects ended ones, and exports them in batches: every 5 s, or as soon as a batch
 * is full.
 */
export function createTracer(deps: {
  settings: TracerSettings;
  clock: Clock;
  version: string;
  /** Spans were dropped. */
  onDropped: (dropped: { spans: number; reason: string }) => void;
}): ClosableTracer {
  const { settings, clock, version, onDropped } = deps;
  let waiting: EndedSpan[] = [];
  let dropped = 0;
  let failure: string | undefined;
  let cancelTimer: (() => void) | undefined;
  let exporting: Promise<void> | undefined;
  let isClosed = false;
  let isLate = false;
  let request = new AbortController();

  function add(span: EndedSpan): void {
    if (isClosed) return;
    if (waiting.length >= MAX_WAITING) {
      dropped += 1;
      return;
    }
    waiting.push(span);
    if (waiting.length >= MAX_BATCH && failure === undefined) flush();
    else cancelTimer ??= clock.after(EXPORT_INTERVAL_MS, flush);
  }

  function flush(): void {
    cancelTimer?.();
    cancelTimer = undefined;
    exporting ??= exportAll().finally(() => {
      exporting = undefined;
      if (waiting.length > 0 && !isClosed) cancelTimer ??= clock.after(EXPORT_INTERVAL_MS, flush);
    });
  }

  /**
   * Exports batches until one fails. A batch that the receiver may accept later is kept for the
   * next export.
   */
  async function exportAll(): Promise<void> {
    failure = undefined;
    while (waiting.length > 0 && failure === undefined) {
      const batch = waiting.slice(0, MAX_BATCH);
      // A controller per request, because AbortSignal.any would keep its listeners as long as the
      // signal exists.
      request = new AbortController();
      if (isLate) request.abort();
      const result = await exportSpans(batch, { settings, version, signal: request.signal });
      if (result.kind !== 'retry') waiting = waiting.slice(batch.length);
      if (result.kind === 'refused') onDropped({ spans: batch.length, reason: result.reason });
      if (result.kind === 'retry') failure = result.reason;
    }
    if (dropped > 0)
      onDropped({ spans: dropped, reason: failure ?? 'more spans ended than could be exported' });
    dropped = 0;
  }

  return {
    start({ name, kind, parent, links = [], at = clock.now(), attributes = {} }: SpanStart): Span {
      const from = parseTraceparent(parent);
      const traceId = from?.traceId ?? randomBytes(16).toString('hex');
      const isSampled =
        links.length > 0 ||
        (from && settings.followsCaller
          ? from.isSampled
          : isInSample(traceId, settings.sampleRatio));
      if (!isSampled) return UNSAMPLED;
      const spanId = randomBytes(8).toString('hex');
      const linked = links.map(parseTraceparent).filter((link) => link !== undefined);
      let isEnded = false;
      return {
        traceparent: formatTraceparent({ traceId, spanId, isSampled }),
        end({ at: endedAt = clock.now(), error, attributes: more } = {}) {
          if (isEnded) return;
          isEnded = true;
          const all = { ...attributes, ...more };
          const times = { startedAt: at, endedAt: Math.max(at, endedAt) };
          add({
            traceId,
            spanId,
            parentId: from?.spanId,
            name,
            kind,
            links: linked,
            ...times,
            error,
            attributes: all,
          });
        },
      };
    },
    async close(limitMs) {
      const cancelLimit = clock.after(Math.min(limitMs, MAX_CLOSE_MS), () => {
        isLate = true;
        request.abort();
      });
      await exporting;
      cancelTimer?.();
      isClosed = true;
      await exportAll();
      cancelLimit();
      if (waiting.length > 0)
        onDropped({ spans: waiting.length, reason: failure ?? 'the server stopped' });
      waiting = [];
    },
  };
}

/** Decides by the trace id, so that services with the same ratio sample the same traces. */
function isInSample(traceId: string, ratio: number): boolean {
  return Number.parseInt(traceId.slice(-13), 16) < ratio * 2 ** 52;
}

type OtlpSettings = {
  /** The complete URL for traces. */
  url: string;
  /** Sent with each request; values are secret. */
  headers: Record<string, string>;
  timeoutMs: number;
  /** Attributes of this process, with service.name. */
  resource: Record<string, string>;
};

/** A span that has ended. Times are epoch milliseconds. */
type EndedSpan = {
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
async function exportSpans(
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
