import { z } from 'zod';
import { simplify } from '../http/json-schema.ts';
import { eventSchema } from './event-body.ts';
import { SIGNATURES } from './webhook.ts';

/**
 * Returns the JSON Schema of events. It allows additional fields, because a newer server may send
 * more.
 */
export function eventJsonSchema() {
  const { $schema, ...schema } = z.toJSONSchema(z.union(eventSchema.options), {
    io: 'input',
    override: simplify,
  });
  return {
    $schema,
    title: 'Events of dawatch',
    ...schema,
    description:
      'The body of a webhook, the data of the live feed, the data of a job. Ignore types that are not listed here: ' +
      'a newer server may send more.',
  };
}

const header = (name: string, description: string, example: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
  example,
});

/** The `webhooks` section of the OpenAPI document. */
const EVENT_WEBHOOKS = {
  event: {
    post: {
      operationId: 'receiveEvent',
      summary: 'An event, as sent to webhooks and callbacks',
      description:
        'Delivered at least once, always with the same id. 2xx confirms it, 410 disables the webhook, anything else is retried.',
      tags: ['notifications'],
      security: [],
      parameters: [
        header('webhook-id', 'The id of the event', 'evt_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11'),
        header('webhook-timestamp', 'Time of the signature, in seconds since 1970', '1767323045'),
        header(
          'webhook-signature',
          `One or more signatures separated by spaces, each ${SIGNATURES.join(' or ')}, a comma and base64`,
          'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
        ),
      ],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { $ref: '#/components/schemas/Event' },
          },
        },
      },
      responses: {
        '2XX': { description: 'Delivered' },
        '4XX': { description: 'Retried later; 410: never retried' },
      },
    },
  },
};

/** How the documentation of the HTTP interface describes events. */
export const EVENT_DOCUMENTATION = {
  webhooks: EVENT_WEBHOOKS,
  jsonSchema: eventJsonSchema,
};
