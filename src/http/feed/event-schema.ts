import { z } from 'zod';
import { eventSchema } from '../../domain/notifications/event-body.ts';

/** The JSON Schema of what is told to others. It allows fields beyond those listed: a newer server may tell more. */
export function eventJsonSchema() {
  const { $schema, ...schema } = z.toJSONSchema(eventSchema, { io: 'input', override: leaveOutNoise });
  return {
    $schema,
    title: 'Events of dawatch',
    ...schema,
    description:
      'The body of a webhook, the data of the live feed, the data of a job. Pass over types that are not listed here: ' +
      'a newer server may tell of more.',
  };
}

/** What zod adds to every time and every whole number, where people have to read around it. */
function leaveOutNoise({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}
