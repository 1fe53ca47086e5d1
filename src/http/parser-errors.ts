import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { STATUS_CODES } from 'node:http';

/** Node's codes for what its HTTP parser refuses and for what takes too long; any other is a malformed request. */
const REFUSALS = new Map<string, { status: number; message: string }>([
  ['HPE_HEADER_OVERFLOW', { status: 431, message: 'The request line and headers are too large' }],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', { status: 413, message: 'The chunk extensions are too large' }],
  ['ERR_HTTP_REQUEST_TIMEOUT', { status: 408, message: 'The request took too long to arrive' }],
]);
const MALFORMED = { status: 400, message: 'The request is not well-formed HTTP/1.1' };

/**
 * Answers what never becomes a request, in the contract's Error body too. There is no response object to use at this
 * level, so the bytes are written as they are, and the connection is closed.
 *
 * @param onRefusal called with the status of each answer.
 */
export function answerParserErrors(server: Server, onRefusal: (status: number) => void): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // A response under way can't be taken back; a client that is gone can't be answered.
    const underWay =
      (socket as { _httpMessage?: { headersSent: boolean } })._httpMessage?.headersSent === true;
    if (!socket.writable || error.code === 'ECONNRESET' || underWay) {
      socket.destroy();
      return;
    }
    const { status, message } = REFUSALS.get(error.code ?? '') ?? MALFORMED;
    onRefusal(status);
    end(socket, status, message);
  });

  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    onRefusal(405);
    end(socket, 405, 'CONNECT is not served here', 'Allow: POST, OPTIONS\r\n');
  });
}

function end(socket: Duplex, status: number, message: string, headers = ''): void {
  const body = JSON.stringify({ error: status, message: `${message}.` });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      `Content-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}` +
      `Connection: close\r\n\r\n${body}`,
  );
}
