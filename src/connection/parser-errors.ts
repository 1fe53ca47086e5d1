import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Failure } from '../errors/failure.js';
import { endAndLinger, ignoreWhatFollows, isIgnored } from './lingering-close.js';
import type { Refuse } from './refuse.js';

/** By Node's code: what its HTTP parser refuses, and what takes too long. Any other is told as MALFORMED. */
const FAILURES = new Map(
  (
    [
      ['HPE_HEADER_OVERFLOW', 431, 'The request line and headers are too large'],
      ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 413, 'The chunk extensions are too large'],
      ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'The request took too long to arrive'],
      ['HPE_INVALID_METHOD', 400, 'The request does not start with a method of HTTP'],
      ['HPE_INVALID_URL', 400, 'The request target must be a path, with or without a query'],
      ['HPE_INVALID_VERSION', 400, 'The request line must end in HTTP/1.1 or HTTP/1.0'],
      ['HPE_INVALID_HEADER_TOKEN', 400, 'A header is malformed'],
      ['HPE_INVALID_CONTENT_LENGTH', 400, 'Content-Length must be one number, without Transfer-Encoding'],
      ['HPE_UNEXPECTED_CONTENT_LENGTH', 400, 'Content-Length must be sent once'],
      ['HPE_INVALID_TRANSFER_ENCODING', 400, 'Transfer-Encoding must be chunked, without Content-Length'],
      ['HPE_INVALID_CHUNK_SIZE', 400, 'The size of a chunk of the body is malformed'],
      ['HPE_INVALID_EOF_STATE', 400, 'The request ended before it was complete'],
    ] as const
  ).map(([code, error, message]) => [code as string, new Failure(error, message)]),
);
const MALFORMED = new Failure(400, 'The request is not well-formed HTTP/1.1');
const TUNNEL = new Failure(405, 'CONNECT is not served here', { headers: { Allow: 'POST, OPTIONS' } });

/**
 * Answers what Node's HTTP parser refuses, in the contract's Error body too.
 *
 * What never becomes a request has no response object. A request whose body fails has one.
 */
export function answerParserErrors(server: Server, refuse: Refuse): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (isIgnored(socket)) return;
    ignoreWhatFollows(socket);
    inTurn(socket, () => {
      const { response, incoming } = exchangeOn(socket);
      if (!socket.writable || error.code === 'ECONNRESET') {
        // The client is gone.
        socket.destroy();
      } else if (response?.headersSent === true || (response === undefined && incoming?.complete === false)) {
        // The request whose body has the fault is answered already.
        endAndLinger(socket);
      } else {
        refuse(FAILURES.get(error.code ?? '') ?? MALFORMED, { socket, response });
      }
    });
  });

  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    inTurn(socket, () => refuse(TUNNEL, { socket }));
  });
}

/** Lets each request that came whole before it have its own answer first. */
function inTurn(socket: Socket, act: () => void): void {
  const { response } = exchangeOn(socket);
  if (response?.req.complete === true) response.once('close', () => inTurn(socket, act));
  else act();
}

/**
 * What Node keeps at the socket without declaring it.
 *
 * @returns the response that is next to be written, and the request that is being read or was the last to be.
 */
function exchangeOn(socket: Socket): { response?: ServerResponse; incoming?: IncomingMessage } {
  const { _httpMessage: response, parser } = socket as {
    _httpMessage?: ServerResponse | null;
    parser?: { incoming?: IncomingMessage | null } | null;
  };
  return { ...(response && { response }), ...(parser?.incoming && { incoming: parser.incoming }) };
}
