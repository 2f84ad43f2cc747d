import { z } from 'zod';

export type JsonSchema = z.core.JSONSchema.BaseSchema;

const COMPONENTS = '#/components/schemas/';
const SCALARS = ['string', 'number', 'integer', 'boolean'];

/** The schemas of a document. */
export type Converted = {
  /** Returns a reference if the schema has an `id`, otherwise the schema itself. */
  jsonOf: (schema: z.ZodType) => JsonSchema;
  /** Every schema with an `id` that is reachable from the converted ones, sorted by name. */
  components: Record<string, JsonSchema>;
};

/**
 * Converts zod schemas to JSON Schema 2020-12, the dialect of OpenAPI 3.1. Each schema with an `id`
 * in its metadata becomes one component, to which all others refer. Responses are converted like
 * requests, which leaves additional fields allowed: a newer server may send more.
 */
export function convertSchemas(schemas: Iterable<z.ZodType>): Converted {
  const registry = z.registry<{ id: string }>();
  const inline = new Map<z.ZodType, string>();
  for (const schema of new Set(schemas)) {
    const id = nameOf(schema);
    if (id === undefined) inline.set(schema, `inline${inline.size}`);
    registry.add(schema, { id: id ?? (inline.get(schema) as string) });
  }
  const { __shared, ...roots } = z.toJSONSchema(registry, {
    io: 'input',
    metadata: z.globalRegistry,
    uri: (id) => `${COMPONENTS}${id}`,
    override: simplify,
  }).schemas as Record<string, JsonSchema>;
  const all = withPlainReferences({
    ...(__shared?.$defs as Record<string, JsonSchema> | undefined),
    ...roots,
  });
  const inlined = new Set(inline.values());
  const named = Object.entries(all).filter(([name]) => !inlined.has(name));
  return {
    jsonOf: (schema) => {
      const name = inline.get(schema);
      return name === undefined ? { $ref: `${COMPONENTS}${nameOf(schema)}` } : { ...all[name] };
    },
    components: Object.fromEntries(named.toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

function nameOf(schema: z.ZodType): string | undefined {
  return z.globalRegistry.get(schema)?.id;
}

/**
 * Shortens the references that zod makes to schemas inside others, and removes what only zod uses.
 */
function withPlainReferences(schemas: Record<string, JsonSchema>): Record<string, JsonSchema> {
  const text = JSON.stringify(schemas).replaceAll(`${COMPONENTS}__shared#/$defs/`, COMPONENTS);
  const plain = JSON.parse(text) as Record<string, JsonSchema>;
  return Object.fromEntries(
    Object.entries(plain).map(([name, { $id: _id, $schema: _schema, id: _name, ...schema }]) => [
      name,
      schema,
    ]),
  );
}

/**
 * Removes keywords that zod adds to every time, integer and record. Converts the default and the
 * examples of a parameter that is published as an integer. Merges `null` into the type of a
 * nullable text, number or boolean; some generators lose it in that of an object.
 */
export function simplify({ jsonSchema }: { jsonSchema: JsonSchema }): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (JSON.stringify(jsonSchema.propertyNames) === '{"type":"string"}')
    delete jsonSchema.propertyNames;
  if (jsonSchema.type === 'integer') {
    if (typeof jsonSchema.default === 'string') jsonSchema.default = Number(jsonSchema.default);
    if (jsonSchema.examples) jsonSchema.examples = jsonSchema.examples.map(Number);
  }
  const [value, other, ...more] = jsonSchema.anyOf ?? [];
  if (!value || more.length > 0 || !isNull(other) || !SCALARS.includes(String(value.type))) return;
  delete jsonSchema.anyOf;
  const merged = { ...value, ...jsonSchema, type: [value.type, 'null'] };
  Object.assign(jsonSchema, merged, value.enum && { enum: [...value.enum, null] });
}

function isNull(schema: JsonSchema | undefined): boolean {
  return schema !== undefined && Object.keys(schema).length === 1 && schema.type === 'null';
}
