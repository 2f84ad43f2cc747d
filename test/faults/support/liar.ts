import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

type Certificate = { key: string; cert: string };

/** What the upstream would have said. */
export type Truth = { status: number; text: string };

export type Exchange = {
  submissionId: string;
  request: IncomingMessage;
  response: ServerResponse;
  socket: Socket;
  /** How often this lie was told about this id before. */
  told: number;
  truth: () => Promise<Truth>;
};

/** Answers in the place of the upstream, in whatever way; `false`: this time the truth is told. */
export type Lie = (exchange: Exchange) => unknown;

export type Liar = Awaited<ReturnType<typeof openLiar>>;

/** An upstream that tells the truth of another one, but lies about some ids, or about all, for a while. */
export async function openLiar(tls?: Certificate) {
  const about = new Map<string, { lie: Lie; told: number }>();
  const open = new Set<Socket>();
  const liar = {
    url: '',
    port: 0,
    /** The upstream that knows. */
    truthUrl: '',
    /** Told in the place of every answer. */
    aboutAll: undefined as Lie | undefined,
    /** What is done with a new connection in the place of everything else. */
    atConnection: undefined as ((socket: Socket) => void) | undefined,
    /** How many requests came. */
    requests: 0,
    /** Requests beside the interface's own path: somebody followed us there. */
    followed: [] as string[],
    lieAbout(ids: Iterable<string>, lie: Lie): void {
      for (const id of ids) about.set(id, { lie, told: 0 });
    },
    told: (id: string) => about.get(id)?.told ?? 0,
    /** From now on the truth. */
    relent(): void {
      about.clear();
      liar.aboutAll = undefined;
      liar.atConnection = undefined;
      if (tls) liar.showCertificate(tls);
    },
    showCertificate(other: Certificate): void {
      if ('setSecureContext' in http) http.setSecureContext(other);
      liar.hangUp();
    },
    /** Whoever is connected must connect anew. */
    hangUp(): void {
      for (const socket of open) socket.destroy();
    },
  };
  const http = tls ? createTlsServer(tls) : createServer();
  const server = createTcpServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
    if (liar.atConnection) liar.atConnection(socket);
    else http.emit('connection', socket);
  });
  const truthOf = async (request: IncomingMessage): Promise<Truth> => {
    const headers = { 'x-api-key': String(request.headers['x-api-key']) };
    const answer = await fetch(`${liar.truthUrl}${request.url}`, { headers });
    return { status: answer.status, text: await answer.text() };
  };
  http.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    liar.requests += 1;
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://liar');
    if (pathname !== '/v1/get_submission_info') liar.followed.push(pathname);
    const submissionId = searchParams.get('submission_id') ?? '';
    const truth = () => truthOf(request);
    const one = about.get(submissionId);
    const { socket } = request;
    const exchange = { submissionId, request, response, socket, told: one?.told ?? 0, truth };
    const lie = liar.aboutAll ?? one?.lie;
    if (lie) {
      if (one) one.told += 1;
      if ((await lie(exchange)) !== false) return;
    }
    const { status, text } = await truth();
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  });
  http.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    liar.hangUp();
    server.close();
    await once(server, 'close');
  });
  liar.port = (server.address() as AddressInfo).port;
  liar.url = `${tls ? 'https' : 'http'}://127.0.0.1:${liar.port}`;
  return liar;
}
