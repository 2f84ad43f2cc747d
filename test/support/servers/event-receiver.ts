import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { verifyWebhook } from '../../../src/client/webhook.ts';
import { sleep } from '../processes/killable-server.ts';

export type EventReceiver = Awaited<ReturnType<typeof openEventReceiver>>;

/**
 * A receiver of webhooks that checks signatures and records what it acknowledged; optionally slow,
 * or refusing a share of the events once. The creator of the webhook sets `secret`.
 */
export async function openEventReceiver(
  how: {
    delayMs?: () => number;
    refuseOneOf?: number;
    toleranceS?: number;
    /** Called at once with the id of each request. */
    onRequest?: (eventId: string) => void;
  } = {},
) {
  const {
    delayMs = () => 0,
    refuseOneOf = Number.POSITIVE_INFINITY,
    toleranceS = 300,
    onRequest,
  } = how;
  const refused = new Set<string>();
  const receiver = {
    url: '',
    secret: '',
    /** The acknowledged bodies by event id. */
    bodies: new Map<string, Set<string>>(),
    /** Requests with an invalid signature. */
    invalid: [] as unknown[],
    inFlight: () => open,
  };
  let open = 0;
  let count = 0;
  const server = createServer(async (request, response) => {
    open += 1;
    onRequest?.(String(request.headers['webhook-id']));
    response.once('close', () => {
      open -= 1;
    });
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    try {
      verifyWebhook({
        payload: body,
        headers: request.headers,
        secret: receiver.secret,
        toleranceS,
      });
    } catch (error) {
      receiver.invalid.push(error);
    }
    const id = String(request.headers['webhook-id']);
    await sleep(delayMs());
    if (++count % refuseOneOf === 0 && !refused.has(id)) {
      refused.add(id);
      response.writeHead(500).end();
      return;
    }
    receiver.bodies.set(id, (receiver.bodies.get(id) ?? new Set()).add(body));
    response.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return receiver;
}
