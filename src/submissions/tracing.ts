import type { FastifyRequest } from 'fastify';

/** Identifies a span across services, as W3C Trace Context defines it. */
export type TraceContext = { traceId: string; spanId: string; isSampled: boolean };

/** server: a request was received; consumer: a job; client: a request was sent. */
export type SpanKind = 'server' | 'client' | 'consumer';
/** Numbers are whole. */
export type SpanAttributes = Record<string, string | number | undefined>;

export type SpanStart = {
  name: string;
  kind: SpanKind;
  /** `traceparent` of the parent span. An invalid one is ignored. */
  parent?: string | undefined;
  /** Epoch milliseconds; default: now. */
  at?: number;
  attributes?: SpanAttributes;
};

export type Span = {
  /** The `traceparent` for spans that this one causes; undefined if it is not sampled. */
  readonly traceparent: string | undefined;
  /** Must be called once. `error`: one sentence without secrets; absent: it succeeded. */
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

type Intake<Result> = {
  /** `traceparent` of the caller; default: the header. */
  parent?: string | undefined;
  attributes: SpanAttributes;
  /** `traceparent`: to be stored with the submissions; undefined if the span is not sampled. */
  run: (traceparent: string | undefined) => Promise<Result>;
  /** `error`: one sentence without secrets; absent: the intake succeeded. */
  describe: (result: Result) => { error?: string | undefined; attributes?: SpanAttributes };
};

/** Accepts submissions within a span that belongs to the caller's trace. */
export async function traceIntake<Result>(
  tracer: Tracer | undefined,
  request: FastifyRequest,
  intake: Intake<Result>,
): Promise<Result> {
  if (!tracer) return intake.run(undefined);
  const { method, routeOptions, headers } = request;
  const parent = intake.parent ?? headers.traceparent;
  const span = tracer.start({
    name: `${method} ${routeOptions.url}`,
    kind: 'server',
    parent: parent === undefined ? undefined : String(parent),
    attributes: {
      'http.request.method': method,
      'http.route': routeOptions.url,
      ...intake.attributes,
    },
  });
  let end: ReturnType<typeof intake.describe> = { error: 'the ledger could not be written' };
  try {
    const result = await intake.run(span.traceparent);
    end = intake.describe(result);
    return result;
  } finally {
    span.end(end);
  }
}
