import type { ResponseFault } from '../support/faulty-upstream.ts';
import { fake, HOSTILE_TEXT, respondWith } from './content-faults.ts';

/**
 * Responses of an upstream about a finalized submission: the first ones in order, then the true
 * response.
 */
export type Correction = { responses: readonly ResponseFault[]; corrections: number };

const unchanged: ResponseFault = () => false;
const pending = respondWith(200, (id) =>
  fake(id, { state: 'Pending', data: { user_id: 'user-1', block_hash: null } }),
);
const failed = respondWith(200, (id) => fake(id, { state: 'Error', error: 'TIMEOUT', data: null }));
const withHash = (block_hash: string) =>
  respondWith(200, (id) => fake(id, { data: { block_hash, block_number: 7 } }));

/** Each ends with the true response, and causes one correction event per reported difference. */
export const CORRECTIONS: Record<string, Correction> = {
  'other hashes first': { responses: [withHash('0xaa')], corrections: 1 },
  'back to Pending': { responses: [unchanged, pending], corrections: 2 },
  'back to Error': { responses: [unchanged, failed], corrections: 2 },
  'back to Error, Pending, another block, as after a reorganisation': {
    responses: [unchanged, failed, pending],
    corrections: 3,
  },
  'Pending for several responses': {
    responses: [unchanged, ...Array.from({ length: 5 }, () => pending)],
    corrections: 2,
  },
  'Error with hostile text': {
    responses: [
      unchanged,
      respondWith(200, (id) => fake(id, { state: 'Error', error: HOSTILE_TEXT, data: null })),
    ],
    corrections: 2,
  },
  'an unknown state': {
    responses: [unchanged, respondWith(200, (id) => fake(id, { state: 'Quantum', data: {} }))],
    corrections: 2,
  },
  'Finalized without its block': {
    responses: [unchanged, respondWith(200, (id) => fake(id, { data: null }))],
    corrections: 2,
  },
  'other hashes first, then Pending': { responses: [withHash('0xaa'), pending], corrections: 2 },
  // A response that is not about a submission contains no information about it.
  'not found because of a failing database': {
    responses: [unchanged, respondWith(500, '{"error":"Record not found"}')],
    corrections: 0,
  },
  'invalid JSON': {
    responses: [
      unchanged,
      respondWith(200, 'OK'),
      respondWith(200, ''),
      respondWith(502, '<html>'),
    ],
    corrections: 0,
  },
  'another id': {
    responses: [unchanged, respondWith(200, () => fake('0c9e2d7a-1111-4222-8333-444455556666'))],
    corrections: 0,
  },
  silence: { responses: [unchanged, () => undefined], corrections: 0 },
  // The submission is gone or refused by now: the stored data stays, and it is not polled again.
  'gone for good': {
    responses: [unchanged, respondWith(404, '{"error":"Submission not found"}')],
    corrections: 0,
  },
  'an id that is refused later': {
    responses: [unchanged, respondWith(406, '{"error":"invalid character"}')],
    corrections: 0,
  },
};

/**
 * Returns the true response until that is Finalized, and then these. A response that the client
 * abandoned does not count.
 */
export function afterFinalized(responses: readonly ResponseFault[]): ResponseFault {
  const turns = new Map<string, number>();
  return async (exchange) => {
    const { submissionId, response, socket } = exchange;
    const { status, text } = await exchange.trueResponse();
    if (socket.destroyed) return undefined;
    const turn = turns.get(submissionId);
    const isFinal = turn !== undefined || JSON.parse(text).state === 'Finalized';
    const fault = isFinal ? responses[turn ?? 0] : undefined;
    if (isFinal) turns.set(submissionId, (turn ?? 0) + 1);
    response.once('close', () => {
      if (isFinal && response.writableEnded && !response.writableFinished)
        turns.set(submissionId, turn ?? 0);
    });
    if (fault && fault !== unchanged) return fault(exchange);
    return response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  };
}
