import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { HttpStatus } from '@nestjs/common';
import { sendError } from './send-error.js';

/** Node's codes for what its HTTP parser refuses and for what takes too long; any other is a malformed request. */
const REFUSALS = new Map<string, { status: number; message: string }>([
  ['HPE_HEADER_OVERFLOW', { status: 431, message: 'The request line and headers are too large' }],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', { status: 413, message: 'The chunk extensions are too large' }],
  ['ERR_HTTP_REQUEST_TIMEOUT', { status: 408, message: 'The request took too long to arrive' }],
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
  const refuse = (error: NodeJS.ErrnoException, socket: Duplex): void => {
    const response = responseOn(socket);
    if (!socket.writable || error.code === 'ECONNRESET') {
      // The client is gone.
      socket.destroy();
    } else if (response?.req.complete === true) {
      // That request is whole, so the fault lies behind it, and each has its answer in its turn.
      response.once('close', () => refuse(error, socket));
    } else if (response?.headersSent === true) {
      socket.destroy();
    } else {
      const { status, message } = REFUSALS.get(error.code ?? '') ?? MALFORMED;
      if (response === undefined) {
        onRefusal(status);
        end(socket, status, message);
      } else {
        response.setHeader('Connection', 'close');
        sendError(response, HttpStatus.BAD_REQUEST, status, message);
      }
    }
  };
  server.on('clientError', refuse);

  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    onRefusal(405);
    end(socket, 405, 'CONNECT is not served here', 'Allow: POST, OPTIONS\r\n');
  });
}

/** The response that is next to be written, which Node keeps there without declaring it. */
function responseOn(socket: Duplex): ServerResponse | undefined {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}

function end(socket: Duplex, status: number, message: string, headers = ''): void {
  const body = JSON.stringify({ error: status, message: `${message}.` });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}` +
      `Connection: close\r\n\r\n${body}`,
  );
}
