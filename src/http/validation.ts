import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { explainIssue } from '../domain/explain-issue.ts';

const PLACES = { body: 'body', params: 'path', querystring: 'query', headers: 'header' } as const;
const MAX_ERRORS = 20;
/** Names, and with them messages, are what was sent, which may be megabytes. */
const MAX_QUOTED_CHARS = 300;

/** A part of a request does not fit its schema. */
export class InvalidRequestError extends Error {
  override readonly name = 'InvalidRequestError';
  readonly statusCode = 400;
  /** `pointer`: a JSON pointer into the body, or the name of a parameter. */
  readonly errors: { pointer: string; detail: string }[];

  constructor(place: (typeof PLACES)[keyof typeof PLACES], issues: readonly z.core.$ZodIssue[]) {
    const errors = issues.slice(0, MAX_ERRORS).map((issue) => ({
      pointer: (place === 'body' ? pointerOf(issue.path) : issue.path.join('/')).slice(0, MAX_QUOTED_CHARS),
      detail: reasonOf(place, issue).slice(0, MAX_QUOTED_CHARS),
    }));
    const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
    const [first] = errors;
    const subject = `${place} ${first?.pointer === '/' ? '' : first?.pointer}`.trim();
    super(`${subject}: ${first?.detail}${more}`);
    this.errors = errors;
  }
}

/** Compiles the zod schemas of a route to validators whose errors are InvalidRequestErrors. */
export const compileValidator: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  const place = PLACES[(httpPart ?? 'body') as keyof typeof PLACES];
  const error: z.core.$ZodErrorMap = (issue) =>
    // The parser of queries gives a list for what is there more than once.
    place === 'query' && issue.code === 'invalid_type' && Array.isArray(issue.input)
      ? 'must be given once'
      : explainIssue(issue);
  return (data) => {
    const result = schema.safeParse(data, { error });
    return result.success ? { value: result.data } : { error: new InvalidRequestError(place, result.error.issues) };
  };
};

function reasonOf(place: string, issue: z.core.$ZodIssue): string {
  return place === 'query' && issue.code === 'unrecognized_keys'
    ? issue.message.replace('no field', 'no parameter')
    : issue.message;
}

/** RFC 6901; the whole body is "/". */
function pointerOf(path: readonly PropertyKey[]): string {
  return `/${path.map((part) => String(part).replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
}
