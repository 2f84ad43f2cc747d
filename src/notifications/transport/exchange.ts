import type { Dispatcher } from 'undici';

/** A response with the part of its body that arrived in time, up to a limit. */
export type HttpResponse = {
  httpStatus: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
};

export type Exchange = ReturnType<typeof exchange>;

/**
 * Sends one request. The status decides the result: a body that is slow, breaks off or never ends
 * does not change it. A body that is not read to its end closes its connection. Dispatching
 * directly avoids the stream that undici's `request` creates for each body, which costs as much as
 * the rest of the exchange (row `webhooks` of `npm run bench`).
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: { bodyTimeoutMs: number; maxBytes: number },
) {
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  let head: Omit<HttpResponse, 'body'> | undefined;
  let stopped: Error | undefined;
  let controller: Dispatcher.DispatchController | undefined;
  let bodyTimer: NodeJS.Timeout | undefined;

  function end(error?: Error): void {
    clearTimeout(bodyTimer);
    if (head) resolve({ ...head, body: Buffer.concat(chunks).subarray(0, limits.maxBytes) });
    else reject(error);
  }

  /** Aborts the exchange. `response` rejects with `error` if no status has arrived. */
  function stop(error: Error): void {
    stopped ??= error;
    end(error);
    controller?.abort(error);
  }

  dispatcher.dispatch(request, {
    onRequestStart(started) {
      controller = started;
      // Without a connection the request could not be aborted.
      if (stopped) started.abort(stopped);
    },
    onResponseStart(_controller, httpStatus, headers) {
      // An informational response precedes the final one.
      if (httpStatus < 200) return;
      head = { httpStatus, headers };
      bodyTimer = setTimeout(() => stop(new Error('the body timed out')), limits.bodyTimeoutMs);
    },
    onResponseData(_controller, chunk) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > limits.maxBytes) stop(new Error('the body exceeds the limit'));
    },
    onResponseEnd: () => end(),
    onResponseError: (_controller, error) => end(error),
  });
  return { response: promise, stop };
}
