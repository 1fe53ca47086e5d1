import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HttpStatus } from '@nestjs/common';
import { endAndLinger, ignoreWhatFollows, isIgnored } from './lingering-close.js';
import { sendError } from '../errors/send-error.js';

/** Node's codes for what its HTTP parser refuses and for what takes too long; any other is told as `MALFORMED`. */
const REFUSALS = new Map<string, { status: number; message: string }>([
  ['HPE_HEADER_OVERFLOW', { status: 431, message: 'The request line and headers are too large' }],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', { status: 413, message: 'The chunk extensions are too large' }],
  ['ERR_HTTP_REQUEST_TIMEOUT', { status: 408, message: 'The request took too long to arrive' }],
  ['HPE_INVALID_METHOD', { status: 400, message: 'The request does not start with a method of HTTP' }],
  ['HPE_INVALID_URL', { status: 400, message: 'The request target must be a path, with or without a query' }],
  ['HPE_INVALID_VERSION', { status: 400, message: 'The request line must end in HTTP/1.1 or HTTP/1.0' }],
  ['HPE_INVALID_HEADER_TOKEN', { status: 400, message: 'A header is malformed' }],
  [
    'HPE_INVALID_CONTENT_LENGTH',
    { status: 400, message: 'Content-Length must be one number, without Transfer-Encoding' },
  ],
  ['HPE_UNEXPECTED_CONTENT_LENGTH', { status: 400, message: 'Content-Length must be sent once' }],
  [
    'HPE_INVALID_TRANSFER_ENCODING',
    { status: 400, message: 'Transfer-Encoding must be chunked, without Content-Length' },
  ],
  ['HPE_INVALID_CHUNK_SIZE', { status: 400, message: 'The size of a chunk of the body is malformed' }],
  ['HPE_INVALID_EOF_STATE', { status: 400, message: 'The request ended before it was complete' }],
]);
const MALFORMED = { status: 400, message: 'The request is not well-formed HTTP/1.1' };

/**
 * Answers what Node's HTTP parser refuses, in the contract's Error body too, and closes the connection.
 *
 * What never becomes a request has no response object, so the bytes are written as they are. A request whose body fails
 * has one. Only the contract's operations read a body, and for them every such failure is a 400.
 *
 * @param onRefusal called with the status of each answer that belongs to no request.
 */
export function answerParserErrors(server: Server, onRefusal: (status: number) => void): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (isIgnored(socket)) return;
    ignoreWhatFollows(socket);
    inTurn(socket, () => {
      const { status, message } = REFUSALS.get(error.code ?? '') ?? MALFORMED;
      const { response, incoming } = exchangeOn(socket);
      if (!socket.writable || error.code === 'ECONNRESET') {
        // The client is gone.
        socket.destroy();
      } else if (response?.headersSent === true || (response === undefined && incoming?.complete === false)) {
        // The request whose body has the fault is answered already.
        endAndLinger(socket);
      } else if (response === undefined) {
        onRefusal(status);
        end(socket, status, message);
      } else {
        response.setHeader('Connection', 'close');
        sendError(response, HttpStatus.BAD_REQUEST, status, message);
      }
    });
  });

  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    inTurn(socket, () => {
      onRefusal(405);
      end(socket, 405, 'CONNECT is not served here', 'Allow: POST, OPTIONS\r\n');
    });
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

function end(socket: Socket, status: number, message: string, headers = ''): void {
  const body = JSON.stringify({ error: status, message: `${message}.` });
  endAndLinger(
    socket,
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}` +
      `Connection: close\r\n\r\n${body}`,
  );
}
