import { describe, expect, it, onTestFinished } from 'vitest';
import type { Channel, Outgoing, SendResult } from '../../src/notifications/channels/channel.ts';
import { eventually } from '../support/until.ts';
import { failedEvent, HOSTILE_TEXTS, hostileEvent, outgoing } from './sample-events.ts';

/** A channel and its real receiver. */
export type Rig = {
  channel: Channel;
  /** The received messages, one text for each. */
  received: () => string[] | Promise<string[]>;
  /** The number of open connections. */
  connections: () => number | Promise<number>;
  /** Releases resources that the channel uses and does not own. */
  release?: () => Promise<void>;
};

export type ChannelUnderTest = {
  /** Accepts everything. */
  working: () => Promise<Rig>;
  /** Responds, but accepts nothing. */
  failing: () => Promise<Rig>;
  /** Accepts the connection and never responds. */
  hanging: () => Promise<Rig>;
  /** The port is closed. */
  absent: () => Promise<Rig>;
  /** Requests a pause of 7 seconds, if the protocol has a way to do so. */
  throttling?: () => Promise<Rig>;
  /** Secrets of the addresses and logins, which no error may contain. */
  secrets: readonly string[];
  /** The number of messages for a batch of three events. */
  messagesOfThree: number;
  /**
   * Fails the test if a message exceeds the limits of the service, or could mention a user or
   * imitate other content.
   */
  expectHarmless: (message: string) => void;
};

/** The contract that every channel has to fulfil. */
export function describeChannel(name: string, subject: ChannelUnderTest): void {
  const { secrets, expectHarmless } = subject;

  async function open(
    kind: 'working' | 'failing' | 'hanging' | 'absent' | 'throttling',
  ): Promise<Rig> {
    const rig = await (subject[kind] as () => Promise<Rig>)();
    onTestFinished(async () => {
      await rig.channel.close();
      await rig.release?.();
    });
    return rig;
  }

  async function send(rig: Rig, batch: readonly Outgoing[], signal = new AbortController().signal) {
    const result = await rig.channel.send(batch, signal);
    for (const secret of secrets) expect(JSON.stringify(result)).not.toContain(secret);
    return result;
  }

  const one = () => [outgoing(failedEvent())];

  describe(`${name}, as a channel`, () => {
    it(`delivers a batch of three as ${subject.messagesOfThree}, with everything in it`, async () => {
      const rig = await open('working');
      const ids = ['first-one', 'second-one', 'third-one'].slice(0, rig.channel.maxBatch);
      const batch = ids.map((submissionId) => outgoing(failedEvent({ submissionId })));
      expect(await send(rig, batch)).toMatchObject(DELIVERED);
      const messages = await rig.received();
      expect(messages).toHaveLength(Math.min(subject.messagesOfThree, ids.length));
      for (const id of ids) expect(messages.join('\n')).toContain(id);
    });

    it('accepts as many events at once as it declares', async () => {
      const rig = await open('working');
      const batch = Array.from({ length: rig.channel.maxBatch }, () =>
        outgoing(failedEvent({ submissionId: 'x'.repeat(128), error: 'E'.repeat(2_000) })),
      );
      expect(await send(rig, batch)).toMatchObject(DELIVERED);
      for (const message of await rig.received()) expectHarmless(message);
    });

    it('continues to work after a failure', async () => {
      const rig = await open('failing');
      expectFailed(await send(rig, one()));
      expectFailed(await send(rig, one()));
    });

    if (subject.throttling)
      it('returns the delay that the receiver requests', async () => {
        const rig = await open('throttling');
        const result = await send(rig, one());
        expectFailed(result);
        expect(result).toMatchObject({ httpStatus: 429, slowDown: { retryAfterMs: 7_000 } });
      });

    it('ends a send that hangs when its signal aborts', async () => {
      const rig = await open('hanging');
      const controller = new AbortController();
      const sent = send(rig, one(), controller.signal);
      await eventually(async () => expect(await rig.connections()).toBeGreaterThan(0));
      controller.abort();
      // Before the channel's own time limit, which may be much longer.
      expect(await sent).toMatchObject({ kind: 'failed', error: 'the attempt was aborted' });
    });

    it('does not start a send whose signal is aborted already', async () => {
      const rig = await open('working');
      expectFailed(await send(rig, one(), AbortSignal.abort()));
      expect(await rig.received()).toEqual([]);
    });

    it('fails if the port is closed', async () => {
      const rig = await open('absent');
      expectFailed(await send(rig, one()));
    });

    it('closes idempotently, leaves no connection open, and then sends nothing', async () => {
      const rig = await open('working');
      await send(rig, one());
      await Promise.all([rig.channel.close(), rig.channel.close()]);
      await rig.channel.close();
      await rig.release?.();
      await eventually(async () => expect(await rig.connections()).toBe(0));
      expectFailed(await send(rig, one()));
      expect(await rig.received()).toHaveLength(1);
    });

    it('delivers hostile texts harmlessly, alone and in a batch', async () => {
      const rig = await open('working');
      for (const text of HOSTILE_TEXTS) {
        const start = JSON.stringify(text.slice(0, 40));
        const one = [outgoing(hostileEvent(text))];
        expect(await send(rig, one), start).toMatchObject(DELIVERED);
        const many = Array.from({ length: Math.min(12, rig.channel.maxBatch) }, () =>
          outgoing(hostileEvent(text)),
        );
        expect(await send(rig, many), start).toMatchObject(DELIVERED);
      }
      const messages = await rig.received();
      expect(messages.length).toBeGreaterThanOrEqual(2 * HOSTILE_TEXTS.length);
      for (const message of messages) {
        expect(message.isWellFormed()).toBe(true);
        expectHarmless(message);
      }
    });
  });
}

/** Expects separate lines without characters that move a cursor or change the text direction. */
export function expectEscaped(text: string): void {
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
}

const DELIVERED = { kind: 'delivered' };

function expectFailed(result: SendResult): void {
  expect(result).toMatchObject({ kind: 'failed', error: expect.stringMatching(/./) });
}
