import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** The response of the real upstream. */
export type TrueResponse = { status: number; text: string };

type Exchange = {
  submissionId: string;
  request: IncomingMessage;
  response: ServerResponse;
  socket: Socket;
  /** The number of earlier requests about this id during the fault. */
  requestCount: number;
  trueResponse: () => Promise<TrueResponse>;
};

/** Responds in place of the upstream; returns `false` to send the true response this time. */
export type ResponseFault = (exchange: Exchange) => unknown;

export type FaultyUpstream = Awaited<ReturnType<typeof openFaultyUpstream>>;

/** Forwards to a real upstream, but responds falsely about some ids, or about all for a while. */
export async function openFaultyUpstream() {
  const about = new Map<string, { fault: ResponseFault; requestCount: number }>();
  const open = new Set<Socket>();
  const upstream = {
    url: '',
    /** The real upstream. */
    sandboxUrl: '',
    /** Replaces every response. */
    aboutAll: undefined as ResponseFault | undefined,
    /** Handles new connections instead of the HTTP server. */
    atConnection: undefined as ((socket: Socket) => void) | undefined,
    /** The number of requests. */
    requests: 0,
    /** Requests outside the path of the interface: a client followed a redirect. */
    followed: [] as string[],
    injectFor(ids: Iterable<string>, responseFault: ResponseFault): void {
      for (const id of ids) about.set(id, { fault: responseFault, requestCount: 0 });
    },
    requestCount: (id: string) => about.get(id)?.requestCount ?? 0,
    /** Sends true responses from now on. */
    stopFaults(): void {
      about.clear();
      upstream.aboutAll = undefined;
      upstream.atConnection = undefined;
    },
    /** Closes every connection, so that clients must connect again. */
    hangUp(): void {
      for (const socket of open) socket.destroy();
    },
  };
  const http = createServer();
  const server = createTcpServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
    if (upstream.atConnection) upstream.atConnection(socket);
    else http.emit('connection', socket);
  });
  const fetchTrueResponse = async (request: IncomingMessage): Promise<TrueResponse> => {
    const headers = { 'x-api-key': String(request.headers['x-api-key']) };
    const response = await fetch(`${upstream.sandboxUrl}${request.url}`, { headers });
    return { status: response.status, text: await response.text() };
  };
  http.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    upstream.requests += 1;
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://upstream');
    if (pathname !== '/v1/get_submission_info') upstream.followed.push(pathname);
    const submissionId = searchParams.get('submission_id') ?? '';
    const trueResponse = () => fetchTrueResponse(request);
    const one = about.get(submissionId);
    const { socket } = request;
    const exchange = {
      submissionId,
      request,
      response,
      socket,
      requestCount: one?.requestCount ?? 0,
      trueResponse,
    };
    const responseFault = upstream.aboutAll ?? one?.fault;
    if (responseFault) {
      if (one) one.requestCount += 1;
      if ((await responseFault(exchange)) !== false) return;
    }
    const { status, text } = await trueResponse();
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    upstream.hangUp();
    server.close();
    await once(server, 'close');
  });
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return upstream;
}
