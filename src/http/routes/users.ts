import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { AuditEntry, UserLookup } from '../ports.ts';
import { problemResponse } from '../problems.ts';
import { logOf } from '../request-log.ts';
import { wholeNumber } from '../whole-number.ts';
import { emailSchema, type LookupAccess, lookupAccess, lookupCaller } from './user-access.ts';
import { sendLookup } from './user-answers.ts';

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
    app_id: z.union([z.int(), z.string()]).nullish().describe('A string where it is too large for a JSON number'),
    assigned_wallet: z.string().nullish(),
  })
  .describe("A user: the upstream's record with every field as it came; some upstreams have fewer fields, some more")
  .meta({ examples: [EXAMPLE] });

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

const problems = {
  400: problemResponse,
  401: problemResponse,
  403: problemResponse,
  502: problemResponse,
  503: problemResponse,
  504: problemResponse,
  507: problemResponse,
};

/** The upstream's lookups of users, with one answer for all of its dialects. Each one is in the audit before it is answered. */
export function registerUsers(instance: FastifyInstance, deps: LookupAccess): void {
  const { users } = deps;
  const security = users.forwards ? [{ bearer: [] }] : [{ apiKey: [] }, { bearer: [] }];
  // Clients of the upstream look for its `error` in a failure.
  const config = { hasErrorMember: true, prefersBearer: true, forwardsBearer: users.forwards };
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const credential = users.forwards
    ? "Wants the upstream's own token, which is forwarded. "
    : 'Wants a token of dawatch. ';

  const spellings = { '/users/get_user': 'getUser', '/user/get_user': 'getUserOtherSpelling' };
  for (const [path, operationId] of Object.entries(spellings))
    app.get(
      path,
      {
        config,
        onRequest: lookupAccess(deps, { action: 'users.get', roles: ['user', 'admin'] }),
        schema: {
          operationId,
          summary: 'Look up one user',
          description: `${credential}/users/get_user and /user/get_user are the same. Every lookup is audited.`,
          tags: ['users'],
          security,
          querystring: getQuerySchema,
          response: { 200: userSchema, ...problems, 404: problemResponse },
        },
      },
      async (request, reply) => {
        const { email } = request.query;
        const startedMs = performance.now();
        const asking = lookupCaller(deps, request);
        const lookup = await users.getUser(request.query, asking.authorization);
        const isOther = lookup.kind === 'found' && isAboutAnother(email, lookup.value.email);
        const details = isOther ? ['another user was answered'] : [];
        note(request, { asking, action: 'users.get', email, details, startedMs }, lookup);
        return sendLookup(reply, lookup, users.forwards);
      },
    );

  app.get(
    '/admin/get_all_users',
    {
      config,
      onRequest: lookupAccess(deps, { action: 'users.list', roles: ['admin'] }),
      schema: {
        operationId: 'getAllUsers',
        summary: 'List users',
        description: `${credential}Never more than \`limit\`, in the upstream's order. Every lookup is audited.`,
        tags: ['users'],
        security,
        querystring: z.strictObject({
          limit: wholeNumber({ min: 1, max: users.maxLimit }).meta({
            examples: [String(Math.min(100, users.maxLimit))],
          }),
        }),
        response: {
          200: z
            .array(userSchema)
            .describe('The plain list')
            .meta({ examples: [[EXAMPLE]] }),
          ...problems,
        },
      },
    },
    async (request, reply) => {
      const limit = Number(request.query.limit);
      const startedMs = performance.now();
      const asking = lookupCaller(deps, request);
      const lookup = await users.listUsers(limit, asking.authorization);
      const details = [`limit ${limit}`, ...(lookup.kind === 'found' ? [`${lookup.value.length} users`] : [])];
      note(request, { asking, action: 'users.list', email: null, details, startedMs }, lookup);
      return sendLookup(reply, lookup, users.forwards);
    },
  );

  /** Audit and log. Throws if the audit can't be written: then there is no answer. */
  function note(
    request: FastifyRequest,
    asked: {
      asking: ReturnType<typeof lookupCaller>;
      action: AuditEntry['action'];
      email: string | null;
      details: string[];
      startedMs: number;
    },
    lookup: UserLookup<unknown>,
  ): void {
    const { asking, action, email, details, startedMs } = asked;
    const { caller, bearer } = asking;
    const outcome = outcomeOf(lookup, users.forwards);
    const why = outcome === 'failed' || outcome === 'refused' ? [reasonOf(lookup)] : [];
    const entry = {
      caller: caller.name,
      address: request.clientAddress,
      action,
      outcome,
      detail: [...details, ...why].join(', ') || null,
    };
    deps.audit.add({ ...entry, email, bearer, credentialId: caller.id });
    const duration_ms = Math.round(performance.now() - startedMs);
    const fields = {
      ...entry,
      duration_ms,
      ...(lookup.kind === 'unavailable' && { upstream_message: lookup.detail }),
    };
    if (outcome === 'failed') logOf(request).warn(fields, 'users.lookup');
    else logOf(request).info(fields, 'users.lookup');
  }
}

function outcomeOf({ kind }: UserLookup<unknown>, forwards: boolean): AuditEntry['outcome'] {
  if (kind === 'found' || kind === 'not_found' || kind === 'busy') return kind;
  // Without a token of the caller's, it is not the caller who is refused.
  return kind !== 'unavailable' && forwards ? 'refused' : 'failed';
}

function reasonOf(lookup: UserLookup<unknown>): string {
  return lookup.kind === 'unavailable' ? lookup.reason : `${lookup.kind} by the upstream`;
}

/** Some upstreams pass over the parameters: the user is then the token's. That is the upstream's answer, but it is written down. */
function isAboutAnother(asked: string, answered: unknown): boolean {
  return typeof answered === 'string' && answered.trim().toLowerCase() !== asked.toLowerCase();
}
