import type { HttpResult } from '../lib/http-call.ts';
import { isObject, parseJson } from '../lib/json.ts';
import { type PauseRequest, retryAfterMs } from '../lib/retry-after.ts';
import { isKeyRefusal } from '../submissions/classify.ts';
import { REACHABLE_ID_PATTERN, SUBMISSION_ID_PATTERN } from '../submissions/submission.ts';
import type { Content, UpstreamClient } from './upstream-client.ts';

/** The two endpoints that accept data. */
export const SUBMIT_PATHS = ['/v1/submit_data', '/v1/submit_raw_data'] as const;
export type SubmitPath = (typeof SUBMIT_PATHS)[number];

/** Data of a client, forwarded unchanged. `query`: with its question mark, or empty. */
export type SubmitRequest = {
  path: SubmitPath;
  query: string;
  headers: Record<string, string>;
  body: Buffer;
};

type HttpResponse = Extract<HttpResult, { kind: 'response' }>;
/** The upstream's own response, to be returned to the client. */
export type SubmitResponse = Content & { httpStatus: number };

/**
 * Whether the upstream has accepted the data. `detail` is for logs and clients and contains no
 * credentials. `quote` is the beginning of the response. It may repeat the data, so it is only for
 * the client.
 */
export type SubmitResult =
  | { kind: 'accepted'; submissionId: string; response: SubmitResponse }
  /** The upstream refused the request and accepted nothing. */
  | { kind: 'refused'; response: SubmitResponse }
  /** The upstream refuses the credentials of this server. */
  | { kind: 'unauthorized' }
  /** A proxy or firewall refused the request. */
  | { kind: 'blocked'; httpStatus: number }
  /** Nothing was sent. */
  | { kind: 'not_sent'; detail: string }
  /** The data was sent, and it is not known whether the upstream has accepted it. */
  | { kind: 'unclear'; isTimeout: boolean; detail: string; quote: string };

const MAX_QUOTED_CHARS = 300;
/** A proxy gave up waiting for the client or for the service. */
const REQUEST_TIMEOUT = 408;
const TOO_MANY_REQUESTS = 429;

type PostClient = { post: UpstreamClient['post']; close(): Promise<void> };

/** Submits data to one upstream, once. Never rejects and never repeats a request. */
export class UpstreamSubmitter {
  readonly #client: PostClient;
  readonly #apiKey: string | undefined;

  constructor({ client, apiKey }: { client: PostClient; apiKey: string | undefined }) {
    this.#client = client;
    this.#apiKey = apiKey;
  }

  /**
   * `pause`: the time of the next request as requested by the response; undefined: not specified.
   */
  async submit(
    request: SubmitRequest,
  ): Promise<SubmitResult & { pause?: PauseRequest | undefined }> {
    const { path, query, headers, body } = request;
    const key = this.#apiKey === undefined ? {} : { 'x-api-key': this.#apiKey };
    const { response, content, wasSent } = await this.#client.post({
      path: `${path}${query}`,
      headers: { accept: 'application/json', 'accept-encoding': 'identity', ...headers, ...key },
      body,
    });
    if (response.kind === 'response')
      return { ...classifySubmit(response, content), pause: pauseIn(response) };
    if (!wasSent) return { kind: 'not_sent', detail: response.detail };
    return {
      kind: 'unclear',
      isTimeout: response.reason === 'timeout',
      detail: response.detail,
      quote: '',
    };
  }

  /** Closes immediately; calls in flight return failures. */
  close(): Promise<void> {
    return this.#client.close();
  }
}

function pauseIn(response: HttpResponse): PauseRequest | undefined {
  const { httpStatus } = response;
  const waitMs = retryAfterMs(response);
  if (httpStatus === TOO_MANY_REQUESTS) return { kind: 'throttled', retryAfterMs: waitMs };
  return httpStatus >= 500 && waitMs !== null
    ? { kind: 'unavailable', retryAfterMs: waitMs }
    : undefined;
}

function classifySubmit({ httpStatus, body }: HttpResponse, content: Content): SubmitResult {
  const response = { ...content, httpStatus };
  const unclear = (what: string): SubmitResult => ({
    kind: 'unclear',
    isTimeout: false,
    detail: `HTTP ${httpStatus}${what}`,
    quote: body.trim() === '' ? '' : `: ${body.slice(0, MAX_QUOTED_CHARS)}`,
  });
  if (httpStatus === 401 || httpStatus === 403)
    return isKeyRefusal(httpStatus, body)
      ? { kind: 'unauthorized' }
      : { kind: 'blocked', httpStatus };
  if (httpStatus >= 400 && httpStatus < 500 && httpStatus !== REQUEST_TIMEOUT)
    return { kind: 'refused', response };
  if (httpStatus < 200 || httpStatus >= 300) return unclear('');
  const submissionId = submissionIdIn(parseJson(body));
  if (submissionId === undefined) return unclear(' without a submission id');
  return { kind: 'accepted', submissionId, response };
}

/**
 * Returns the id in `{"submission_id"}`, bare or wrapped in `data`, as the user endpoints wrap
 * their records.
 */
function submissionIdIn(body: unknown): string | undefined {
  if (!isObject(body)) return undefined;
  const { submission_id: id = isObject(body.data) ? body.data.submission_id : undefined } = body;
  const isUsable =
    typeof id === 'string' && SUBMISSION_ID_PATTERN.test(id) && REACHABLE_ID_PATTERN.test(id);
  return isUsable ? id : undefined;
}
