import type { Dispatcher } from 'undici';

/** What came of a request: its headers, and as much of the body as was wanted and came in time. */
export type HttpResponse = { httpStatus: number; headers: Record<string, string | string[] | undefined>; body: Buffer };

export type Exchange = {
  response: Promise<HttpResponse>;
  /** Ends it at once, wherever it is. `error`: what `answer` rejects with if there is none yet. */
  stop(error: Error): void;
};

/**
 * One request and its answer. The status is the answer: a body that drips, breaks off or never ends changes nothing, and
 * what is not read to its end takes its connection with it. undici's own `request` makes a stream of each body, which
 * costs as much as the rest.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: { bodyTimeoutMs: number; maxBytes: number },
): Exchange {
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

  function stop(error: Error): void {
    stopped ??= error;
    end(error);
    controller?.abort(error);
  }

  dispatcher.dispatch(request, {
    onRequestStart(started) {
      controller = started;
      // It could not be called off while there was no connection for it.
      if (stopped) started.abort(stopped);
    },
    onResponseStart(_controller, httpStatus, headers) {
      // Informational: the answer is yet to come.
      if (httpStatus < 200) return;
      head = { httpStatus, headers };
      bodyTimer = setTimeout(() => stop(new Error('the rest is not waited for')), limits.bodyTimeoutMs);
    },
    onResponseData(_controller, chunk) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > limits.maxBytes) stop(new Error('the rest is not wanted'));
    },
    onResponseEnd: () => end(),
    onResponseError: (_controller, error) => end(error),
  });
  return { response: promise, stop };
}
