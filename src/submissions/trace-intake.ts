import type { FastifyRequest } from 'fastify';
import type { SpanAttributes, Tracer } from './tracing.ts';

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
