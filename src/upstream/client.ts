import type { UpstreamResponse } from '../domain/classify.ts';
import { UpstreamPool, type UpstreamPoolOptions } from './pool.ts';

export type UpstreamClientOptions = UpstreamPoolOptions & { apiKey: string | undefined };

/** Requests submissions from one upstream. */
export class UpstreamClient {
  readonly #pool: UpstreamPool;
  #headers: Record<string, string> = {};

  constructor({ apiKey, ...options }: UpstreamClientOptions) {
    this.#pool = new UpstreamPool(options);
    this.useApiKey(apiKey);
  }

  /** Sends this key from the next request on. */
  useApiKey(apiKey: string | undefined): void {
    this.#headers = { accept: 'application/json', ...(apiKey !== undefined && { 'x-api-key': apiKey }) };
  }

  /** GET /v1/get_submission_info. Never rejects. */
  getSubmissionInfo(submissionId: string): Promise<UpstreamResponse> {
    return this.#pool.get({
      path: `/v1/get_submission_info?submission_id=${encodeURIComponent(submissionId)}`,
      headers: this.#headers,
    });
  }

  /** Closes immediately; calls in flight return failures. */
  close(): Promise<void> {
    return this.#pool.close();
  }
}
