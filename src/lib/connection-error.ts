import { errors } from 'undici';

/**
 * A connection refused by the guard. The message contains the kind of the address, not the address.
 */
export class RefusedAddressError extends Error {
  override readonly name = 'RefusedAddressError';
  readonly reason: string;
  constructor(reason: string) {
    super(`refused: ${reason}`);
    this.reason = reason;
  }
}

export type ConnectionCause =
  | 'closed'
  | 'refused'
  | 'timeout'
  | 'unreachable'
  | 'unknown_name'
  | 'dns'
  | 'tls'
  | 'headers_too_large'
  | 'not_http'
  /** Refused by the address guard. */
  | 'guarded'
  | 'proxy'
  | 'other';

const NOT_HTTP = 'the response is not HTTP';
const CAUSES: readonly [codes: RegExp, cause: ConnectionCause, sentence: string][] = [
  [
    /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/,
    'closed',
    'the connection was closed before a response',
  ],
  [/^ECONNREFUSED$/, 'refused', 'the connection was refused'],
  [/^(?:ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'timeout', 'the connection timed out'],
  [/^(?:EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, 'unreachable', 'the host is unreachable'],
  [/^(?:ENOTFOUND|ENODATA)$/, 'unknown_name', 'the host name does not resolve'],
  [/^(?:EAI_|ESERVFAIL|EREFUSED|ETIMEOUT)/, 'dns', 'the DNS lookup failed'],
  [
    /^(?:ERR_TLS_|ERR_SSL_|CERT_|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|CRL_)/,
    'tls',
    'TLS failed',
  ],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'headers_too_large', 'the response headers are too large'],
  [/^UND_ERR_RES_/, 'not_http', NOT_HTTP],
  // undici aborts a request if the proxy refuses it.
  [
    /^UND_ERR_(?:ABORTED|PRX_)/,
    'proxy',
    'the proxy of HTTPS_PROXY or HTTP_PROXY made no connection',
  ],
];

/**
 * Classifies an error by its code. `sentence` contains neither the URL nor an address, unlike the
 * error's message.
 */
export function causeOf(error: unknown): { cause: ConnectionCause; sentence: string } {
  if (error instanceof RefusedAddressError) return { cause: 'guarded', sentence: error.message };
  // undici 8 sets no code for it.
  if (error instanceof errors.HTTPParserError) return { cause: 'not_http', sentence: NOT_HTTP };
  const code = codeOf(error);
  const [, cause = 'other', known] = CAUSES.find(([codes]) => codes.test(code)) ?? [];
  if (cause === 'tls') return { cause, sentence: `${known} (${code})` };
  const sentence =
    known ?? (/^[A-Z_]+$/.test(code) ? `the request failed (${code})` : 'the request failed');
  return { cause, sentence };
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}
