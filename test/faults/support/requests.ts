import { CRASH_API_KEY } from '../../support/processes/killable-server.ts';

type HttpResponse = { status: number; retryAfter: string | null; body: Record<string, unknown> };

/** Sends one tracking request. Throws what fetch throws. */
export async function trackOnce(
  url: string,
  submissionIds: readonly string[],
): Promise<HttpResponse> {
  const response = await fetch(`${url}/v1/submissions`, {
    method: 'POST',
    headers: { 'x-api-key': CRASH_API_KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ submission_ids: submissionIds }),
  });
  const body = (await response.json()) as HttpResponse['body'];
  return { status: response.status, retryAfter: response.headers.get('retry-after'), body };
}

/** Returns the response of /readyz. */
export async function readiness(url: string): Promise<HttpResponse> {
  const response = await fetch(`${url}/readyz`);
  return {
    status: response.status,
    retryAfter: null,
    body: (await response.json()) as HttpResponse['body'],
  };
}
