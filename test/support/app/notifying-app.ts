import { expect } from 'vitest';
import {
  deliveryDetailsSchema,
  deliveryListSchema,
  deliverySchema,
} from '../../../src/notifications/deliveries-routes.ts';
import {
  webhookDetailsSchema,
  webhookListSchema,
  webhookSchema,
  webhookWithSecretSchema,
} from '../../../src/notifications/webhooks-routes.ts';
import { eventually } from '../until.ts';
import { call, type HttpResponse, parse, pathOf, post } from './http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from './lookups.ts';
import { useApp } from './running-app.ts';

/**
 * An app for a whole test file whose webhooks may be on this machine, and requests of its
 * administrator.
 */
export function useNotifyingApp(setting: Parameters<typeof useApp>[0] = {}) {
  const webhooks = { allow: ['127.0.0.0/8'], allow_http: true };
  const app = useApp({ adminToken: ADMIN_TOKEN, webhooks, ...setting });
  const admin = (method: string, path: string, body?: unknown): Promise<HttpResponse> =>
    call(app.url, path, {
      method,
      headers: AS_ADMIN,
      ...(body !== undefined && { body }),
    });
  const details = async (id: number) => deliveryOf(await admin('GET', `/v1/deliveries/${id}`));
  return {
    get url() {
      return app.url;
    },
    prepare: app.prepare,
    admin,
    create: (fields: object) => createWebhook(app.url, fields),
    details,
    deliveries: async (query: string) =>
      deliveriesOf(await admin('GET', `/v1/deliveries?${query}`)).deliveries,
    /** Adds an event about each submission by cancelling it. */
    async cancelled(ids: string[], fields: object = {}): Promise<void> {
      await post(app.url, { submission_ids: ids, ...fields });
      for (const id of ids) await call(app.url, pathOf(id), { method: 'DELETE' });
    },
    /** Resolves with the delivery after its attempt, or once there will be none. */
    tried: (id: number) =>
      eventually(async () => {
        const delivery = await details(id);
        expect(delivery.attempts.length > 0 || delivery.state !== 'waiting').toBe(true);
        return delivery;
      }),
  };
}

/** Creates a webhook as the administrator. */
export const createWebhook = async (url: string, body: object) =>
  createdOf(await call(url, '/v1/webhooks', { method: 'POST', headers: AS_ADMIN, body }));

/** Resolves once an alert fires. */
export const untilAlerted = (url: string) =>
  eventually(async () =>
    expect(JSON.parse((await call(url, '/v1/alerts')).text).alerts).not.toEqual([]),
  );

/** Made once, because the first use of a schema compiles it. */
const strict = {
  webhook: webhookSchema.strict(),
  hookDetails: webhookDetailsSchema.strict(),
  webhooks: webhookListSchema.strict(),
  secret: webhookWithSecretSchema.strict(),
  delivery: deliverySchema.strict(),
  details: deliveryDetailsSchema.strict(),
  deliveries: deliveryListSchema.strict(),
};

/**
 * Parse the responses of the routes, which must have the documented status and shape without
 * further fields.
 */
export const createdOf = (response: HttpResponse) => parse(response, 201, strict.secret);
export const rotatedOf = (response: HttpResponse) => parse(response, 200, strict.secret);
export const webhookOf = (response: HttpResponse) => parse(response, 200, strict.webhook);
export const webhookDetailsOf = (response: HttpResponse) =>
  parse(response, 200, strict.hookDetails);
export const webhooksOf = (response: HttpResponse) => parse(response, 200, strict.webhooks);
export const acceptedOf = (response: HttpResponse) => parse(response, 202, strict.delivery);
const deliveryOf = (response: HttpResponse) => parse(response, 200, strict.details);
export const deliveriesOf = (response: HttpResponse) => parse(response, 200, strict.deliveries);
