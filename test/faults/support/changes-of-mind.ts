import type { Lie } from './liar.ts';
import { fake, HOSTILE_TEXT, say } from './lies-of-content.ts';

/** What an upstream says of a submission that is final: the first answers, one after the other; then the truth. */
export type ChangeOfMind = { said: readonly Lie[]; corrections: number };

const truth: Lie = () => false;
const pending = say(200, (id) => fake(id, { state: 'Pending', data: { user_id: 'user-1', block_hash: null } }));
const failed = say(200, (id) => fake(id, { state: 'Error', error: 'TIMEOUT', data: null }));
const withHash = (block_hash: string) => say(200, (id) => fake(id, { data: { block_hash, block_number: 7 } }));

/** Each comes to the truth in the end, and says as often as it differs from what was said before. */
export const CHANGES_OF_MIND: Record<string, ChangeOfMind> = {
  'other hashes first': { said: [withHash('0xaa')], corrections: 1 },
  'back to Pending': { said: [truth, pending], corrections: 2 },
  'back to Error': { said: [truth, failed], corrections: 2 },
  'back to Error, Pending, another block, as after a reorganisation': {
    said: [truth, failed, pending],
    corrections: 3,
  },
  'Pending for long': { said: [truth, ...Array.from({ length: 5 }, () => pending)], corrections: 2 },
  'Error with hostile text': {
    said: [truth, say(200, (id) => fake(id, { state: 'Error', error: HOSTILE_TEXT, data: null }))],
    corrections: 2,
  },
  'an unknown state': { said: [truth, say(200, (id) => fake(id, { state: 'Quantum', data: {} }))], corrections: 2 },
  'Finalized without its block': { said: [truth, say(200, (id) => fake(id, { data: null }))], corrections: 2 },
  'other hashes first, then Pending': { said: [withHash('0xaa'), pending], corrections: 2 },
  // No answer about a submission says nothing of it.
  'not found by a database that fails': { said: [truth, say(500, '{"error":"Record not found"}')], corrections: 0 },
  'no JSON': { said: [truth, say(200, 'OK'), say(200, ''), say(502, '<html>')], corrections: 0 },
  'another id': { said: [truth, say(200, () => fake('0c9e2d7a-1111-4222-8333-444455556666'))], corrections: 0 },
  silence: { said: [truth, () => undefined], corrections: 0 },
  // It is gone, or refused by now: what was known stays, and nobody asks again.
  'gone for good': { said: [truth, say(404, '{"error":"Submission not found"}')], corrections: 0 },
  'an id that is refused by now': { said: [truth, say(406, '{"error":"invalid character"}')], corrections: 0 },
};

/** Tells the truth until that is Finalized, and from then on these. What nobody waited for any more was not said. */
export function afterFinalized(said: readonly Lie[]): Lie {
  const turns = new Map<string, number>();
  return async (exchange) => {
    const { submissionId, response, socket } = exchange;
    const { status, text } = await exchange.truth();
    if (socket.destroyed) return undefined;
    const turn = turns.get(submissionId);
    const isFinal = turn !== undefined || JSON.parse(text).state === 'Finalized';
    const lie = isFinal ? said[turn ?? 0] : undefined;
    if (isFinal) turns.set(submissionId, (turn ?? 0) + 1);
    response.once('close', () => {
      if (isFinal && response.writableEnded && !response.writableFinished) turns.set(submissionId, turn ?? 0);
    });
    if (lie && lie !== truth) return lie(exchange);
    return response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  };
}
