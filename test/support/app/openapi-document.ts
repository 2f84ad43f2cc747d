import { z } from 'zod';
import { call } from './http-calls.ts';

const schema = z.record(z.string(), z.unknown());
const content = z.record(
  z.string(),
  z.object({ schema, example: z.unknown(), examples: z.unknown() }).partial(),
);
const security = z.array(z.partialRecord(z.enum(['apiKey', 'bearer']), z.array(z.string())));
const operationSchema = z.object({
  operationId: z.string().regex(/^[a-z][A-Za-z]+$/),
  summary: z.string().min(5),
  tags: z.array(z.string()).length(1),
  security: security.optional(),
  parameters: z
    .array(
      z.object({
        name: z.string(),
        in: z.enum(['path', 'query', 'header']),
        required: z.boolean().optional(),
        description: z.string().min(5),
        schema,
        example: z.unknown().optional(),
      }),
    )
    .default([]),
  requestBody: z.object({ required: z.literal(true), content }).optional(),
  responses: z.record(
    z.string().regex(/^([2-5]\d\d|default)$/),
    z.object({
      description: z.string().min(5),
      headers: z.record(z.string(), schema).default({}),
      // Undefined if the response has no body.
      content: content.default({}),
    }),
  ),
});
export type Operation = z.output<typeof operationSchema>;

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
const documentSchema = z.object({
  openapi: z.string().regex(/^3\.1\.\d$/),
  info: z.object({
    title: z.literal('dawatch'),
    version: z.string(),
    license: z.object({ identifier: z.literal('MIT') }),
  }),
  servers: z.array(z.object({ url: z.string() })).min(1),
  tags: z.array(z.object({ name: z.string(), description: z.string().min(5) })),
  paths: z.record(z.string().startsWith('/'), z.partialRecord(z.enum(METHODS), operationSchema)),
  components: z.object({ securitySchemes: z.record(z.string(), schema) }),
  security,
});

export type Documented = {
  text: string;
  document: z.output<typeof documentSchema>;
  /** Operations by name, such as "GET /v1/submissions/{id}", with every reference resolved. */
  operations: Map<string, Operation>;
};

/** Returns the document of a running app, validated against the parts that the tests read. */
export async function fetchDocument(url: string): Promise<Documented> {
  const { text } = await call(url, '/openapi.json', { headers: { 'x-api-key': [] } });
  const raw: unknown = JSON.parse(text);
  const document = documentSchema.parse(followed(raw, raw));
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );
  return { text, document, operations: new Map(operations) };
}

/** Recursive schemas would not end; the document has none. */
function followed(node: unknown, root: unknown): unknown {
  if (Array.isArray(node)) return node.map((item) => followed(item, root));
  if (typeof node !== 'object' || node === null) return node;
  if ('$ref' in node && typeof node.$ref === 'string')
    return followed(pointedAt(node.$ref, root), root);
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, followed(value, root)]),
  );
}

function pointedAt(ref: string, root: unknown): unknown {
  const keys = ref.replace(/^#\//, '').split('/');
  const target = keys.reduce<unknown>(
    (node, key) => (node as Record<string, unknown> | undefined)?.[key],
    root,
  );
  if (target === undefined) throw new Error(`${ref} points nowhere`);
  return target;
}
