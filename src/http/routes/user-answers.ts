import type { FastifyReply } from 'fastify';
import { sendUnauthenticated } from '../access/access.ts';
import type { UserLookup } from '../ports.ts';
import { sendProblem, setRetryAfter } from '../problems.ts';

/** What a caller is told. Never the upstream's own words: they may hold anything. */
const FAILURES = {
  timeout: 'the upstream did not answer in time',
  network: 'the upstream can not be reached',
  too_large: 'the upstream answered with more than is read',
  http_status: 'the upstream failed',
  throttled: 'the upstream asks for fewer requests',
  malformed: "the upstream's answer is not what its interface says",
} as const;

const BUSY_MS = 1_000;

/** `forwarded`: the upstream saw the caller's own token, so that a refusal is the caller's to know. */
export function sendLookup(reply: FastifyReply, lookup: UserLookup<object>, forwarded: boolean): FastifyReply {
  switch (lookup.kind) {
    case 'found':
      return reply.send(lookup.value);
    case 'not_found':
      return sendProblem(reply, { status: 404, detail: 'no user has this name and this e-mail address' });
    case 'unauthorized':
    case 'forbidden':
      if (!forwarded)
        return sendProblem(reply, { status: 502, detail: "the upstream does not accept this server's own token" });
      if (lookup.kind === 'unauthorized')
        return sendUnauthenticated(reply, 'the upstream does not accept this token for this');
      return sendProblem(reply, { status: 403, detail: 'the upstream does not allow this with this token' });
    case 'busy':
      setRetryAfter(reply, BUSY_MS);
      return sendProblem(reply, { status: 503, detail: 'too many lookups of users are under way' });
    case 'unavailable':
      setRetryAfter(reply, lookup.retryAfterMs);
      return sendProblem(reply, { status: lookup.reason === 'timeout' ? 504 : 502, detail: FAILURES[lookup.reason] });
    default:
      return lookup satisfies never;
  }
}
