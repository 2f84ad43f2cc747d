import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { expect, onTestFinished } from 'vitest';
import { type EventBody, eventSchema } from '../../../src/notifications/event-body.ts';
import { eventually } from '../until.ts';
import { API_KEY } from './running-app.ts';

type ReceivedEvent = { seq: number; type: string; body: EventBody };

export type EventReader = {
  response: IncomingMessage;
  /** Every event so far, oldest first. */
  received: ReceivedEvent[];
  /** The numbers up to which events were missing. */
  gaps: number[];
  /** The last `id:`, with an event or without. */
  position(): number;
  heartbeats(): number;
  /** Resolves once this number of events was received, or the last one is `seq`. */
  has(count: number): Promise<void>;
  reaches(seq: number): Promise<void>;
  cut(): void;
  /** Resolves when the stream ends in any way: a stream without a length has no regular end. */
  ended: Promise<void>;
};

/**
 * Reads the live feed over its own connection, closed when the test ends. The response must be a
 * stream.
 */
export async function readEvents(
  url: string,
  query = '',
  headers: OutgoingHttpHeaders = {},
): Promise<EventReader> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request(`${url}/v1/events${query}`, {
      agent: false,
      headers: { 'x-api-key': API_KEY, ...headers },
    });
    outgoing.on('error', reject).on('response', resolve).end();
  });
  onTestFinished(() => void response.destroy());
  expect([response.statusCode, response.headers['content-type']]).toEqual([
    200,
    'text/event-stream',
  ]);
  const received: ReceivedEvent[] = [];
  const gaps: number[] = [];
  let position = -1;
  let heartbeats = 0;
  let rest = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => [line.split(': ', 1)[0], line.replace(/^[^:]*: /, '')]),
      );
      position = Number(fields.get('id'));
      if (block.startsWith(': heartbeat')) heartbeats += 1;
      const data = fields.get('data');
      if (data === undefined) continue;
      if (fields.get('event') === 'feed.gap') {
        gaps.push(JSON.parse(data).data.through);
        continue;
      }
      const body = eventSchema.parse(JSON.parse(data));
      received.push({ seq: position, type: String(fields.get('event')), body });
      expect(fields.get('event')).toBe(body.type);
    }
  });
  response.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => response.once('close', () => resolve()));
  await eventually(() => expect(position).toBeGreaterThan(-1));
  return {
    response,
    received,
    gaps,
    position: () => position,
    heartbeats: () => heartbeats,
    async has(count) {
      // The limit of a step is for one event, so that a slow machine may take longer for many.
      for (let before = received.length; before < count; before = received.length)
        await eventually(() => expect(received.length).toBeGreaterThan(before));
    },
    reaches: (seq) => eventually(() => expect(position).toBeGreaterThanOrEqual(seq)),
    cut: () => void response.destroy(),
    ended,
  };
}
