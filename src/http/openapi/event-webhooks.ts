import { SIGNATURES } from '../../domain/notifications/webhook.ts';

/** The schemas of events that the document refers to: with `Input`, zod names what a request would take, and none does. */
export function eventSchemas(schemas: object = {}): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => EVENT_SCHEMAS.includes(name)));
}

const EVENT_SCHEMAS = ['SubmissionEvent', 'UpstreamEvent', 'AlertEvent', 'TestEvent'];

const header = (name: string, description: string, example: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
  example,
});

/** What a receiver is sent. */
export const EVENT_WEBHOOKS = {
  event: {
    post: {
      operationId: 'receiveEvent',
      summary: 'An event, as webhooks and callbacks are sent it',
      description:
        'At least once, with the same id. 2xx: it arrived. 410 disables the webhook. Anything else is tried again.',
      tags: ['notifications'],
      security: [],
      parameters: [
        header('webhook-id', 'The id of the event', 'evt_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11'),
        header('webhook-timestamp', 'When this attempt was signed, in seconds since 1970', '1767323045'),
        header(
          'webhook-signature',
          `One or several, separated by spaces, each ${SIGNATURES.join(' or ')}, a comma, and base64`,
          'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
        ),
      ],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { anyOf: EVENT_SCHEMAS.map((name) => ({ $ref: `#/components/schemas/${name}` })) },
          },
        },
      },
      responses: {
        '2XX': { description: 'It arrived' },
        '4XX': { description: 'It is tried again; 410: never again' },
      },
    },
  },
};
