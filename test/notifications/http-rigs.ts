import type { Channel, ChatOptions } from '../../src/notifications/channels/channel.ts';
import type { EventRecord } from '../../src/notifications/event-body.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import { openReceiver, type ScriptedResponse } from '../support/servers/receiver.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';
import type { ChannelUnderTest, Rig } from './channel-conformance.ts';
import { outgoing } from './sample-events.ts';

/** A secret in the path, as in the addresses of Slack, Discord, Teams and Apprise. */
export const URL_SECRET = 'T0p-Secret-Path';

type Create = (options: ChatOptions) => Channel;

/** A channel with a receiver that follows a script; the last response repeats. */
export async function httpRig(
  create: Create,
  script: ScriptedResponse | readonly ScriptedResponse[] = {},
) {
  const receiver = await openReceiver(script);
  const rig = rigAt(create, `${receiver.url}/hooks/${URL_SECRET}`);
  return {
    ...rig,
    ...receiverSide(receiver),
    receiver,
    /** Sends events in one batch. */
    send: (...events: EventRecord[]) =>
      rig.channel.send(events.map(outgoing), new AbortController().signal),
  };
}

/** The five receivers of the conformance suite, over HTTP. */
export function httpRigs(
  create: Create,
): Pick<ChannelUnderTest, 'secrets'> & Record<Kind, () => Promise<Rig>> {
  return {
    secrets: [URL_SECRET],
    working: () => httpRig(create),
    failing: () => httpRig(create, { status: 400, body: 'invalid_payload' }),
    hanging: () => httpRig(create, () => undefined),
    throttling: () => httpRig(create, { status: 429, headers: { 'retry-after': '7' } }),
    absent: async () => ({
      ...rigAt(create, `${await deadAddress()}/hooks/${URL_SECRET}`),
      received: () => [],
      connections: () => 0,
    }),
  };
}
type Kind = 'working' | 'failing' | 'hanging' | 'throttling' | 'absent';

function rigAt(create: Create, url: string) {
  const http = createHttpPost({
    guard: { check: () => undefined },
    version: 'test',
    clock: new HeldClock(1_000),
  });
  return { channel: create({ url, post: http.post }), release: () => http.close() };
}

function receiverSide({ requests, connections }: Awaited<ReturnType<typeof openReceiver>>) {
  return {
    received: () => requests.map(({ body }) => body),
    connections: () => connections.open.size,
  };
}
