import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** How long a connection that was answered for the last time may go on sending, in milliseconds. */
export const LINGER_MS = 1_000;

const closing = new WeakSet<Socket>();

/**
 * Closes connections as RFC 9112 section 9.6 would have it. Node closes both ways as soon as the last response is
 * written; what the client still sends (the rest of a body that nobody reads) then makes its kernel throw the response
 * away. Here only the service's own side ends, and what comes is read and forgotten for a moment.
 */
export function lingerAtClose(server: Server): void {
  server.on('connection', (socket: Socket) => {
    socket.destroySoon = () => endAndLinger(socket);
  });
}

/** @param last what to write before the end. */
export function endAndLinger(socket: Socket, last = ''): void {
  ignoreWhatFollows(socket);
  socket.end(last);
  socket.resume();
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(cut));
}

/** From here on nothing that comes on the connection is a request: whoever cut it wrong might have cut it elsewhere. */
export function ignoreWhatFollows(socket: Socket): void {
  closing.add(socket);
}

export function isIgnored(socket: Socket): boolean {
  return closing.has(socket);
}
