import type { IncomingMessage, ServerResponse } from 'node:http';
import { isWaitingToContinue } from './expectation.js';

/** How long the rest of a body that nobody reads may take before its connection is cut, in milliseconds. */
const LINGER_MS = 1_000;

/**
 * For a request that is answered before its body was read: what still comes is thrown away unread, so that the client
 * gets to see the answer, but only for a moment. A client that was never told to send its body will not, so there the
 * connection ends with the answer.
 */
export function abandonBody(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete) return;
  if (isWaitingToContinue(request)) {
    response.setHeader('Connection', 'close');
    return;
  }
  const { socket } = request;
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  request.once('end', () => clearTimeout(cut)).once('close', () => clearTimeout(cut));
  request.resume();
}
