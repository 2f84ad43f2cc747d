import { createHash } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { verifyWebhook } from '../../../src/client/webhook.ts';
import { createWebhookChannel, makeSecret } from '../../../src/notifications/channels/webhook.ts';
import {
  createAddressGuard,
  type LookupAll,
} from '../../../src/notifications/transport/address-guard.ts';
import { createHttpPost } from '../../../src/notifications/transport/http-post.ts';
import { context, observation } from '../../support/ledger/domain.ts';
import { trackRequest } from '../../support/ledger/ledger-file.ts';
import { openReceiver, type ScriptedResponse, selfSigned } from '../../support/servers/receiver.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { DAY_MS, failed, openDispatcher } from '../../support/virtual-time/virtual-dispatcher.ts';
import { createExchanges } from '../upstream/real-exchanges.ts';
import {
  addressOf,
  HOSTILITIES,
  type Hostility,
  SELF_SIGNED,
  TURNS_PRIVATE,
} from './hostile-receivers.ts';

/** The virtual clock of the product. */
const TIMEOUT_MS = 15_000;
const SECRET = makeSecret('v1');

export type DayReceiver = {
  name: string;
  /** The id of its webhook. */
  webhookId: string;
  /** Digests of the accepted bodies by event id. */
  taken: Map<string, Set<string>>;
  /** The number of requests it received. */
  attempts: number;
};

/**
 * The real dispatcher, ledger, signing, guard and HTTP client with real servers of every kind. Only
 * time is virtual: it stops while bytes are in transit. The same seed produces the same day.
 */
export function openDay(between: (min: number, max: number) => number) {
  const exchanges = createExchanges();
  const violations: string[] = [];
  const receivers = new Map<string, DayReceiver>();
  let isRepaired = false;
  const lookup: LookupAll = (hostname, _options, callback) => {
    const address = isRepaired ? '127.0.0.1' : addressOf(hostname, clock.now());
    process.nextTick(callback, null, [{ address, family: 4 }]);
  };
  const http = createHttpPost({
    guard: createAddressGuard({ allow: ['127.0.0.1/32'] }),
    version: 'test',
    now: () => clock.now(),
    timeoutMs: 60_000,
    lookup,
  });
  onTestFinished(() => http.close());
  const channelTo = (webhookId: string) =>
    createWebhookChannel({
      post: http.post,
      endpoint: {
        url: ledger.webhooks.get(webhookId, clock.now())?.url ?? null,
        secrets: [SECRET],
      },
      refusalOf: () => undefined,
      now: () => clock.now(),
    });
  const world = openDispatcher({
    settle: exchanges.settle,
    // A day has thousands of commits, and the test does not measure the disk.
    folder: tempFolder({ inMemory: true }),
    random: () => between(0, 999_999) / 1_000_000,
    async receive(destination, batch, signal) {
      const receiver = receivers.get(destination);
      const key = `${receiver?.name}:${batch[0]?.event.id}`;
      if (receiver) receiver.attempts += 1;
      const latencyMs = between(2_000, 200_000) / 1_000;
      const timeout = new AbortController();
      const cancel = clock.after(TIMEOUT_MS, () => {
        exchanges.resume(key);
        timeout.abort();
      });
      exchanges.begin(key);
      const both = AbortSignal.any([signal, timeout.signal]);
      const result = await channelTo(destination.replace('webhook:', '')).send(batch, both);
      cancel();
      exchanges.end(key);
      if (timeout.signal.aborted)
        return failed({ httpStatus: null, error: 'no answer within 15 s' });
      await new Promise<void>((resolve) => clock.after(latencyMs, resolve));
      return result;
    },
  });
  const { clock, ledger } = world;

  function script(receiver: DayReceiver, hostility: Hostility): ScriptedResponse {
    const seen = new Map<string, number>();
    return ({ request, response, socket }) => {
      const received = server(receiver).requests.splice(0).at(-1);
      const eventId = String(request.headers['webhook-id']);
      const before = seen.get(eventId) ?? 0;
      seen.set(eventId, before + 1);
      const body = received?.body ?? '';
      const take = () => {
        try {
          const event = verifyWebhook({
            payload: body,
            headers: request.headers,
            secret: SECRET,
            now: clock.now(),
          });
          if (event.id !== eventId)
            violations.push(`${receiver.name}: ${event.id} came as ${eventId}`);
        } catch (error) {
          violations.push(`${receiver.name}: ${error}`);
        }
        const digest = createHash('sha1').update(body).digest('base64');
        receiver.taken.set(eventId, (receiver.taken.get(eventId) ?? new Set()).add(digest));
      };
      if (received?.localAddress !== '127.0.0.1')
        violations.push(`${receiver.name}: was reached at ${received?.localAddress}`);
      const accept: Parameters<Hostility>[0]['accept'] = ({
        headers = {},
        body: httpResponse,
      } = {}) => {
        take();
        response
          .writeHead(200, {
            ...headers,
            ...(receiver.name === TURNS_PRIVATE && { connection: 'close' }),
          })
          .end(httpResponse);
      };
      const park = () => exchanges.park(`${receiver.name}:${eventId}`);
      if (isRepaired) accept();
      else hostility({ request, response, socket, now: clock.now(), before, take, accept, park });
    };
  }

  const servers = new Map<DayReceiver, Awaited<ReturnType<typeof openReceiver>>>();
  function server(receiver: DayReceiver) {
    const found = servers.get(receiver);
    if (!found) throw new Error(`${receiver.name} has no server`);
    return found;
  }

  async function open(
    name: string,
    hostility: Hostility,
    metadata: Record<string, unknown> | null,
    more: { tls?: ReturnType<typeof selfSigned>; hostname?: string } = {},
  ): Promise<DayReceiver> {
    const receiver: DayReceiver = { name, webhookId: '', taken: new Map(), attempts: 0 };
    const { tls, hostname = '127.0.0.1' } = more;
    const options = { ...(more.hostname && { host: '0.0.0.0' }), ...(tls && { tls }) };
    servers.set(receiver, await openReceiver(script(receiver, hostility), options));
    const { url, port } = server(receiver);
    receiver.webhookId = world.webhook(`${new URL(url).protocol}//${hostname}:${port}/hook`, {
      metadata,
    });
    receivers.set(`webhook:${receiver.webhookId}`, receiver);
    return receiver;
  }

  return {
    world,
    violations,
    honest: (name: string) => open(name, ({ accept }) => accept(), null),
    /** Creates a receiver of every kind, for events with that metadata only. */
    async hostile(metadata: Record<string, unknown>): Promise<DayReceiver[]> {
      const all: DayReceiver[] = [];
      for (const [name, hostility] of Object.entries(HOSTILITIES))
        all.push(await open(name, hostility, metadata));
      const accepts: Hostility = ({ accept }) => accept();
      all.push(await open(TURNS_PRIVATE, accepts, metadata, { hostname: 'turns-private.test' }));
      const tls = selfSigned();
      if (tls) all.push(await open(SELF_SIGNED, accepts, metadata, { tls }));
      return all;
    },
    flapping: (name: string, metadata: Record<string, unknown>) =>
      open(name, HOSTILITIES['works every other hour'] as Hostility, metadata),
    /** Finalizes a submission, with or without a temporary failure: two events or one. */
    finalize(
      submissionId: string,
      fields: { fails: boolean; metadata: Record<string, unknown> },
    ): number {
      const now = clock.now();
      const far = now + 1_000 * DAY_MS;
      const limits = { deadlineAt: far, graceEndsAt: far, stuckAt: far };
      ledger.track([trackRequest(submissionId, { ...limits, metadata: fields.metadata })], now);
      const verdicts = fields.fails ? (['error', 'finalized'] as const) : (['finalized'] as const);
      ledger.record(
        verdicts.map((verdict) => observation(verdict, now, submissionId)),
        context({ now }),
      );
      return verdicts.length;
    },
    /** Makes all receivers work from now on, and replays what they missed. */
    async repair(): Promise<void> {
      isRepaired = true;
      for (const receiver of receivers.values()) {
        if (receiver.name === SELF_SIGNED) await moveToHttp(receiver);
        ledger.webhooks.update(receiver.webhookId, { enabled: true }, clock.now());
        ledger.deliveries.replayDead(`webhook:${receiver.webhookId}`, 0, clock.now());
      }
    },
  };

  async function moveToHttp(receiver: DayReceiver): Promise<void> {
    servers.set(receiver, await openReceiver(script(receiver, ({ accept }) => accept())));
    ledger.webhooks.update(
      receiver.webhookId,
      { url: `${server(receiver).url}/hook` },
      clock.now(),
    );
  }
}
