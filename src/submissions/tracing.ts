/** Identifies a span across services, as W3C Trace Context defines it. */
export type TraceContext = { traceId: string; spanId: string; isSampled: boolean };

/**
 * server: a request was received; consumer: a job; client: a request was sent; internal: no
 * communication.
 */
export type SpanKind = 'internal' | 'server' | 'client' | 'consumer';
export type SpanAttributes = Record<string, string | number | boolean | undefined>;

export type SpanStart = {
  name: string;
  kind: SpanKind;
  /** `traceparent` of the parent span. An invalid one is ignored. */
  parent?: string | undefined;
  /** `traceparent` of sampled spans that caused this one. A span with a link is always sampled. */
  links?: readonly string[];
  /** Epoch milliseconds; default: now. */
  at?: number;
  attributes?: SpanAttributes;
};

export type Span = {
  /** The `traceparent` for spans that this one causes; undefined if it is not sampled. */
  readonly traceparent: string | undefined;
  /** `error`: one sentence without secrets; absent: it succeeded. */
  end(result?: { at?: number; error?: string | undefined; attributes?: SpanAttributes }): void;
};

/** Records spans. Never throws. */
export type Tracer = { start(span: SpanStart): Span };

const TRACEPARENT =
  /^(?!ff)(?<version>[0-9a-f]{2})-(?!0{32})(?<traceId>[0-9a-f]{32})-(?!0{16})(?<spanId>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<more>-.*)?$/;

/**
 * Parses a `traceparent`. Returns undefined if it is invalid. Later versions may append fields,
 * which are ignored.
 */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  const { version, traceId, spanId, flags, more } = TRACEPARENT.exec(text ?? '')?.groups ?? {};
  if (!traceId || !spanId || (version === '00' && more !== undefined)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags ?? '', 16) & 1) === 1 };
}

export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}
