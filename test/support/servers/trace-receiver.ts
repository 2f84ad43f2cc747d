import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { z } from 'zod';

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`));
const nanoseconds = z.string().regex(/^\d{19}$/);
const value = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ intValue: z.string().regex(/^-?\d+$/) }),
]);
const attributes = z
  .array(z.strictObject({ key: z.string(), value }))
  .transform((all) =>
    Object.fromEntries(all.map(({ key, value }) => [key, Object.values(value)[0]])),
  );
const span = z.strictObject({
  traceId: hex(16),
  spanId: hex(8),
  parentSpanId: hex(8).optional(),
  name: z.string(),
  kind: z.int().min(1).max(5),
  startTimeUnixNano: nanoseconds,
  endTimeUnixNano: nanoseconds,
  attributes,
  status: z.strictObject({ code: z.literal(2).optional(), message: z.string().optional() }),
  flags: z.int(),
});
/** ExportTraceServiceRequest of OTLP in its JSON encoding. */
const exportRequest = z.strictObject({
  resourceSpans: z.tuple([
    z.strictObject({
      resource: z.strictObject({ attributes }),
      scopeSpans: z.tuple([
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string() }),
          spans: z.array(span),
        }),
      ]),
    }),
  ]),
});
type ReceivedSpan = z.output<typeof span>;

/** A receiver of OTLP over HTTP. It refuses requests that are not valid. */
export async function openTraceReceiver() {
  const receiver = {
    url: '',
    spans: [] as ReceivedSpan[],
    requests: [] as {
      path: string;
      headers: IncomingHttpHeaders;
      resource: Record<string, unknown>;
    }[],
    named: (name: string) => receiver.spans.filter((one) => one.name === name),
  };
  const server = createServer(async (request, response) => {
    const parsed = exportRequest.safeParse(await json(request));
    if (parsed.success) {
      const [{ resource, scopeSpans }] = parsed.data.resourceSpans;
      receiver.spans.push(...scopeSpans[0].spans);
      receiver.requests.push({
        path: request.url ?? '',
        headers: request.headers,
        resource: resource.attributes,
      });
    }
    response
      .writeHead(parsed.success ? 200 : 400, { 'content-type': 'application/json' })
      .end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return receiver;
}
