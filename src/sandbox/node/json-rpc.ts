import { z } from 'zod';

/** An error that the caller receives. */
export class RpcError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const CODE = { parse: -32_700, request: -32_600, method: -32_601, params: -32_602 } as const;

export function invalidParams(message: string): RpcError {
  return new RpcError(CODE.params, `Invalid params: ${message}`);
}

/** Returns the result of a method. */
export type Method = (params: readonly unknown[]) => unknown;
export type Methods = Readonly<Record<string, Method>>;

const requestSchema = z.object({
  jsonrpc: z.literal('2.0'),
  method: z.string(),
  params: z.array(z.unknown()).default([]),
  id: z.union([z.string(), z.number(), z.null()]).optional(),
});

/**
 * Calls the methods of a JSON-RPC 2.0 message, which may be a batch. Returns the text of the
 * response; undefined if the message contains only notifications.
 */
export function respond(text: string, methods: Methods): string | undefined {
  const message = parse(text);
  if (message === undefined) return JSON.stringify(failure(null, CODE.parse, 'Parse error'));
  if (!Array.isArray(message)) {
    const response = answer(message, methods);
    return response && JSON.stringify(response);
  }
  if (message.length === 0) return JSON.stringify(failure(null, CODE.request, 'Invalid request'));
  const responses = message
    .map((each) => answer(each, methods))
    .filter((each) => each !== undefined);
  return responses.length === 0 ? undefined : JSON.stringify(responses);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function answer(message: unknown, methods: Methods): object | undefined {
  const request = requestSchema.safeParse(message);
  if (!request.success) return failure(null, CODE.request, 'Invalid request');
  const { method: name, params, id } = request.data;
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
  try {
    if (method === undefined) throw new RpcError(CODE.method, 'Method not found');
    const result = method(params);
    return id === undefined ? undefined : { jsonrpc: '2.0', result, id };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return id === undefined ? undefined : failure(id, error.code, error.message);
  }
}

function failure(id: string | number | null, code: number, message: string): object {
  return { jsonrpc: '2.0', error: { code, message }, id };
}
