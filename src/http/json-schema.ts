import { z } from 'zod';

type JsonSchema = z.core.JSONSchema.BaseSchema;

const SCALARS = ['string', 'number', 'integer', 'boolean'];

/**
 * Allows additional fields unless a schema refuses them: a newer server may send more. Merges
 * `null` into types, and makes defaults and examples of integer parameters numbers.
 */
export function simplify({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodType;
  jsonSchema: JsonSchema;
}): void {
  const [value, other, ...more] = jsonSchema.anyOf ?? [];
  if (value && more.length === 0 && isNull(other) && SCALARS.includes(String(value.type))) {
    delete jsonSchema.anyOf;
    const merged = { ...value, ...jsonSchema, type: [value.type, 'null'] };
    Object.assign(jsonSchema, merged, value.enum && { enum: [...value.enum, null] });
  }
  if (zodSchema instanceof z.ZodObject && !zodSchema.def.catchall)
    delete jsonSchema.additionalProperties;
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (JSON.stringify(jsonSchema.propertyNames) === '{"type":"string"}')
    delete jsonSchema.propertyNames;
  if (jsonSchema.type === 'integer') {
    if (typeof jsonSchema.default === 'string') jsonSchema.default = Number(jsonSchema.default);
    if (jsonSchema.examples) jsonSchema.examples = jsonSchema.examples.map(Number);
  }
}

function isNull(schema: JsonSchema | undefined): boolean {
  return schema !== undefined && Object.keys(schema).length === 1 && schema.type === 'null';
}
