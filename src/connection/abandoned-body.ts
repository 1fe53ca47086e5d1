import type { IncomingMessage } from 'node:http';
import { LINGER_MS } from './lingering-close.js';

/**
 * For a request that is answered before its body was read: what still comes is thrown away unread, so that the client
 * gets to see the answer, but only for a moment. (Where the client waits for leave to send its body, Node ends the
 * connection with the answer.)
 */
export function abandonBody(request: IncomingMessage): void {
  if (request.complete) return;
  const { socket } = request;
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  request.once('end', () => clearTimeout(cut)).once('close', () => clearTimeout(cut));
  request.resume();
}
