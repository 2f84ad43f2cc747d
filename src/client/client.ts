/** A submission as the HTTP interface shows it. */
export type Submission = {
  submission_id: string;
  upstream: string;
  status: string;
  upstream_state: string | null;
  data: Record<string, unknown> | null;
  error: string | null;
  tracked_at: string;
  finalized_at: string | null;
  deadline_at: string;
  polls: number;
  metadata: Record<string, unknown> | null;
};

export type HistoryEntry = {
  seq: number;
  at: string;
  status: string;
  previous_status: string | null;
  upstream_state: string | null;
  data: Record<string, unknown> | null;
  error: string | null;
};

export type SubmissionWithHistory = Submission & { history: HistoryEntry[] };

export type Tracked = { accepted: number; already_tracked: number; submissions: Submission[] };

export type TrackOptions = {
  upstream?: string;
  /** ISO 8601. */
  deadline?: string;
  metadata?: Record<string, unknown>;
};

/** dawatch answered with a problem document. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly errors: readonly { pointer: string; detail: string }[];
  constructor(problem: {
    status: number;
    title: string;
    detail: string;
    errors?: { pointer: string; detail: string }[];
  }) {
    super(`${problem.title}: ${problem.detail}`);
    this.status = problem.status;
    this.errors = problem.errors ?? [];
  }
}

/** No answer came at all, or not one of dawatch. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** Talks to a dawatch server. Uses nothing beyond the platform's fetch. Methods throw ApiError or ConnectionError. */
export class DawatchClient {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor(options: { url: string; apiKey: string }) {
    this.#url = options.url.replace(/\/+$/, '');
    this.#headers = { 'x-api-key': options.apiKey, accept: 'application/json' };
  }

  /** Up to 10,000 ids, taken whole or not at all. Once it resolves they are on the server's disk. */
  track(submissionIds: readonly string[], options: TrackOptions = {}): Promise<Tracked> {
    return this.#request<Tracked>('POST', '/v1/submissions', { submission_ids: submissionIds, ...options });
  }

  get(submissionId: string): Promise<SubmissionWithHistory> {
    return this.#request<SubmissionWithHistory>('GET', pathOf(submissionId));
  }

  list(query: { status?: string | undefined; limit?: number; cursor?: string } = {}): Promise<{
    submissions: Submission[];
    next_cursor: string | null;
  }> {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
    return this.#request('GET', `/v1/submissions?${parameters}`);
  }

  /** Resolves once it is final, or after `timeoutS` (0 to 240) with the submission as it is then. */
  wait(submissionId: string, timeoutS: number): Promise<Submission> {
    return this.#request<Submission>('GET', `${pathOf(submissionId)}/wait?timeout_s=${timeoutS}`);
  }

  cancel(submissionId: string): Promise<Submission> {
    return this.#request<Submission>('DELETE', pathOf(submissionId));
  }

  async #request<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.#fetch(method, path, body);
    const answer: unknown = await response.json().catch(() => undefined);
    if (typeof answer !== 'object' || answer === null)
      throw new ConnectionError(`${this.#url} answered HTTP ${response.status}, but not as dawatch does`);
    if (!response.ok) throw new ApiError({ status: response.status, title: 'Refused', detail: '', ...answer });
    return answer as T;
  }

  async #fetch(method: string, path: string, body: unknown): Promise<Response> {
    const headers = body === undefined ? this.#headers : { ...this.#headers, 'content-type': 'application/json' };
    try {
      return await fetch(`${this.#url}${path}`, {
        method,
        headers,
        redirect: 'error',
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw new ConnectionError(`no answer from ${this.#url}`, { cause: error });
    }
  }
}

function pathOf(submissionId: string): string {
  return `/v1/submissions/${encodeURIComponent(submissionId)}`;
}
