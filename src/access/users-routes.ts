import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { problemResponses, sendProblem, setRetryAfter } from '../http/problems.ts';
import { logOf, type TypedServer, wholeNumber } from '../http/typed-server.ts';
import {
  type Authenticator,
  type Caller,
  type Credentials,
  mayCall,
  requireRole,
  sendUnauthenticated,
} from './access.ts';
import type { AuditAction, AuditResult, AuditTrail } from './audit-store.ts';
import { isOwnToken } from './credentials-store.ts';
import type { UserLookup, Users } from './users.ts';

export type LookupAccess = {
  users: Users;
  ledger: { audit: AuditTrail };
  clock: { now(): number };
  authenticator: Authenticator;
  credentials: Credentials;
};

/** The most users of one listing: a response of some hundred kB. */
const MAX_USERS = 1_000;

/** An address as HTML forms accept it, because upstreams accept no less. */
const emailSchema = z
  .string()
  .max(254)
  .regex(z.regexes.html5Email, 'is not an e-mail address')
  .describe("The user's e-mail address; in a query, + is written %2B");

/** Returns how a lookup is authorized. Refusals of callers with a credential are audited. */
function authorizeLookup(deps: LookupAccess, action: AuditAction) {
  if (deps.users.forwards) return requireUpstreamToken(deps, action);
  const check = requireRole(deps.authenticator);
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const identity = deps.authenticator.identify(request);
    if (identity.kind === 'known' && !mayCall(request, identity.caller)) {
      const { caller } = identity;
      auditRefusal(deps, request, { caller, action, detail: `the role ${caller.role}` });
    }
    check(request, reply, done);
  };
}

/** Runs before the response is sent, which a failed write prevents. */
function auditRefusal(
  deps: LookupAccess,
  request: FastifyRequest,
  refusal: { caller: Caller; action: AuditAction; detail: string },
): void {
  const { caller, action, detail } = refusal;
  const actor = { name: caller.name, credentialId: caller.id, address: request.clientAddress };
  const email = emailIn(request.query);
  deps.ledger.audit.append(actor, deps.clock.now(), { action, result: 'refused', detail, email });
}

/** Accepts a bearer that can be one of the upstream. One of dawatch's own is never forwarded. */
function requireUpstreamToken(deps: LookupAccess, action: AuditAction) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): unknown => {
    const identity = deps.authenticator.identify(request);
    if (identity.kind !== 'forwarded')
      return sendUnauthenticated(
        reply,
        "send the upstream's own token as Authorization: Bearer; it is forwarded",
      );
    const caller = deps.credentials(identity.hash);
    if (!caller && !isOwnToken(identity.secret)) return done();
    if (caller)
      auditRefusal(deps, request, {
        caller,
        action,
        detail: 'a token of dawatch, which is not forwarded',
      });
    return sendUnauthenticated(
      reply,
      "user lookups require the upstream's own token; a token of dawatch is not forwarded",
    );
  };
}

function emailIn(query: unknown): string | null {
  const parsed = z.object({ email: emailSchema }).safeParse(query);
  return parsed.success ? parsed.data.email : null;
}

const EXAMPLE = {
  id: '7d9f4c1e-2b6a-4d53-9c1f-0a8e5b7d3f21',
  name: 'Ada Example',
  email: 'ada@example.com',
  app_id: 101,
  assigned_wallet: '0x8f3cf7ad23cd3cadbd9735aff958023239c6a063',
};

const userSchema = z
  .looseObject({
    id: z.string().nullish(),
    name: z.string().nullish(),
    email: z.string().nullish(),
    app_id: z
      .union([z.int(), z.string()])
      .nullish()
      .describe('A string if it is too large for a JSON number'),
    assigned_wallet: z.string().nullish(),
  })
  .describe(
    "The upstream's record of a user, with every field unchanged; fields vary between upstreams",
  )
  .meta({ id: 'User', examples: [EXAMPLE] });

const getQuerySchema = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(200)
    .refine((name) => !/[\p{Cc}\u2028\u2029]/u.test(name), 'must have no control characters')
    .describe("The user's name, without control characters")
    .meta({ examples: [EXAMPLE.name] }),
  email: emailSchema.meta({ examples: [EXAMPLE.email] }),
});

const problems = problemResponses(502, 504, 507);

/** Every lookup is written to the audit before its response is sent. */
export function registerUsers(app: TypedServer, deps: LookupAccess): void {
  const { forwards, getUser, listUsers } = deps.users;
  const shared = {
    tags: ['users'],
    security: forwards ? [{ bearer: [] }] : [{ apiKey: [] }, { bearer: [] }],
  };
  const config = { hasErrorMember: true, prefersBearer: true, forwardsBearer: forwards };
  const credential = forwards
    ? "Requires the upstream's own token, which is forwarded. "
    : 'Requires a token of dawatch. ';

  const spellings = { '/users/get_user': 'getUser', '/user/get_user': 'getUserOtherSpelling' };
  for (const [path, operationId] of Object.entries(spellings))
    app.get(
      path,
      {
        config: { ...config, roles: ['user'], authorize: authorizeLookup(deps, 'users.get') },
        schema: {
          ...shared,
          operationId,
          summary: 'Get a user',
          description: `${credential}/users/get_user and /user/get_user are equivalent. Every lookup is audited.`,
          querystring: getQuerySchema,
          response: { 200: userSchema, ...problems, ...problemResponses(404) },
        },
      },
      async (request, reply) => {
        const { email } = request.query;
        const startedMs = performance.now();
        const lookup = await getUser(request.query, forwardedBy(request));
        const isOther = lookup.kind === 'found' && isAboutAnother(email, lookup.value.email);
        const details = isOther ? ['another user was returned'] : [];
        record(request, { action: 'users.get', email, details, startedMs }, lookup);
        return sendLookup(reply, lookup, forwards);
      },
    );

  app.get(
    '/admin/get_all_users',
    {
      config: { ...config, authorize: authorizeLookup(deps, 'users.list') },
      schema: {
        ...shared,
        operationId: 'getAllUsers',
        summary: 'List users',
        description: `${credential}Returns at most \`limit\` users, in the upstream's order. Every lookup is audited.`,
        querystring: z.strictObject({
          limit: wholeNumber({ min: 1, max: MAX_USERS }).meta({ examples: ['100'] }),
        }),
        response: {
          200: z
            .array(userSchema)
            .describe('The users')
            .meta({ examples: [[EXAMPLE]] }),
          ...problems,
        },
      },
    },
    async (request, reply) => {
      const limit = Number(request.query.limit);
      const startedMs = performance.now();
      const lookup = await listUsers(limit, forwardedBy(request));
      const found = lookup.kind === 'found' ? [`${lookup.value.length} users`] : [];
      const details = [`limit ${limit}`, ...found];
      record(request, { action: 'users.list', email: null, details, startedMs }, lookup);
      return sendLookup(reply, lookup, forwards);
    },
  );

  /** Throws if the audit cannot be written, so that no result is sent. */
  function record(
    request: FastifyRequest,
    made: { action: AuditAction; email: string | null; details: string[]; startedMs: number },
    lookup: UserLookup<unknown>,
  ): void {
    const { action, email, details, startedMs } = made;
    const { clientAddress: address, identity } = request;
    const bearer = identity?.kind === 'forwarded' ? identity.secret : undefined;
    const { name, id } = request.caller ?? { name: 'forwarded', id: null };
    const result = auditResultOf(lookup, forwards);
    const reason = lookup.kind === 'unavailable' ? lookup.reason : `${lookup.kind} by the upstream`;
    if (result === 'failed' || result === 'refused') details.push(reason);
    const entry = { action, result, detail: details.join(', ') || null };
    const actor = { name, credentialId: id, address };
    deps.ledger.audit.append(actor, deps.clock.now(), { ...entry, email, bearer });
    const fields = {
      caller: name,
      address,
      ...entry,
      duration_ms: Math.round(performance.now() - startedMs),
      ...(lookup.kind === 'unavailable' && { upstream_message: lookup.detail }),
    };
    if (result === 'failed') logOf(request).warn(fields, 'users.lookup');
    else logOf(request).info(fields, 'users.lookup');
  }
}

/** Returns the forwarded Authorization of a caller; undefined: the upstream's own is sent. */
function forwardedBy({ identity, headers }: FastifyRequest): string | undefined {
  return identity?.kind === 'forwarded' ? headers.authorization : undefined;
}

function auditResultOf({ kind }: UserLookup<unknown>, forwards: boolean): AuditResult {
  if (kind === 'found' || kind === 'not_found' || kind === 'busy') return kind;
  // A refusal of the server's own token does not concern the caller.
  return kind !== 'unavailable' && forwards ? 'refused' : 'failed';
}

/** Some upstreams ignore the parameters and return the owner of the token. */
function isAboutAnother(requested: string, returned: unknown): boolean {
  return typeof returned === 'string' && returned.trim().toLowerCase() !== requested.toLowerCase();
}

/** Problem texts. The upstream's own text is never sent, because it can contain anything. */
const FAILURES = {
  timeout: 'the upstream did not respond in time',
  network: 'the upstream cannot be reached',
  too_large: 'the response of the upstream is too large',
  http_status: 'the upstream failed',
  throttled: 'the upstream asks for fewer requests',
  malformed: 'the response of the upstream does not match its interface',
} as const;

const BUSY_MS = 1_000;

/** `forwarded`: the caller's own token was sent, so a refusal is reported to the caller. */
function sendLookup(
  reply: FastifyReply,
  lookup: UserLookup<object>,
  forwarded: boolean,
): FastifyReply {
  const problem = (status: 403 | 404 | 502 | 503 | 504, detail: string) =>
    sendProblem(reply, status, detail);
  switch (lookup.kind) {
    case 'found':
      return reply.send(lookup.value);
    case 'not_found':
      return problem(404, 'no user has this name and this e-mail address');
    case 'unauthorized':
    case 'forbidden':
      if (!forwarded) return problem(502, "the upstream refuses this server's own token");
      return lookup.kind === 'unauthorized'
        ? sendUnauthenticated(reply, 'the upstream refuses this token')
        : problem(403, 'the upstream does not allow this with this token');
    case 'busy':
      setRetryAfter(reply, BUSY_MS);
      return problem(503, 'too many user lookups are in flight');
    case 'unavailable':
      setRetryAfter(reply, lookup.retryAfterMs);
      return problem(lookup.reason === 'timeout' ? 504 : 502, FAILURES[lookup.reason]);
    default:
      return lookup satisfies never;
  }
}
