import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifySchemaCompiler,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { explainIssue } from '../lib/explain-issue.ts';

/** A server whose handlers get the types of their zod schemas. */
export type TypedServer = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route needs no credential. Others need one, see access. */
    isOpen?: boolean;
  }
}

/** Routes of health checks and monitoring, which must always respond. */
const UNLIMITED: readonly string[] = ['/livez', '/readyz', '/metrics'];

/** Whether a route has no rate limit. */
export function isUnlimited(route: string | undefined): boolean {
  return route !== undefined && UNLIMITED.includes(route);
}

const PARTS = { body: 'body', params: 'path', querystring: 'query', headers: 'header' } as const;
const MAX_ERRORS = 20;
/** Messages quote the request, which can be megabytes. */
const MAX_QUOTED_CHARS = 300;

/** A part of a request does not match its schema. */
export class InvalidRequestError extends Error {
  override readonly name = 'InvalidRequestError';
  readonly statusCode = 400;
  /** `pointer`: a JSON pointer into the body, or the name of a parameter. */
  readonly errors: { pointer: string; detail: string }[];

  constructor(part: (typeof PARTS)[keyof typeof PARTS], issues: readonly z.core.$ZodIssue[]) {
    const errors = issues.slice(0, MAX_ERRORS).map((issue) => ({
      pointer: (part === 'body' ? pointerOf(issue.path) : issue.path.join('/')).slice(
        0,
        MAX_QUOTED_CHARS,
      ),
      detail: reasonOf(part, issue).slice(0, MAX_QUOTED_CHARS),
    }));
    const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
    const [first] = errors;
    const subject = `${part} ${first?.pointer === '/' ? '' : first?.pointer}`.trim();
    super(`${subject}: ${first?.detail}${more}`);
    this.errors = errors;
  }
}

/** Compiles a zod schema of a route to a validator that returns InvalidRequestErrors. */
export const compileValidator: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  const part = PARTS[(httpPart ?? 'body') as keyof typeof PARTS];
  const error: z.core.$ZodErrorMap = (issue) =>
    // parseQuery returns an array for a repeated parameter.
    part === 'query' && issue.code === 'invalid_type' && Array.isArray(issue.input)
      ? 'must be given once'
      : explainIssue(issue);
  return (data) => {
    // Fastify has null for an absent body.
    const isDefault = data === null && schema instanceof z.ZodPrefault;
    const result = schema.safeParse(isDefault ? undefined : data, { error });
    return result.success
      ? { value: result.data }
      : { error: new InvalidRequestError(part, result.error.issues) };
  };
};

function reasonOf(part: string, issue: z.core.$ZodIssue): string {
  return part === 'query' && issue.code === 'unrecognized_keys'
    ? issue.message.replace('no field', 'no parameter')
    : issue.message;
}

/** Returns a JSON pointer (RFC 6901), and "/" for the whole body. */
function pointerOf(path: readonly PropertyKey[]): string {
  return `/${path.map((key) => String(key).replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
}
