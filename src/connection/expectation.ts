import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Failure } from '../errors/failure.js';
import type { Refuse } from './refuse.js';

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * `Expect: 100-continue` (RFC 9110 section 10.1.1) is answered when the body is about to be read and not before, so
 * that a client whose request is refused by its header never sends the body.
 */
export function deferContinue(server: Server, refuse: Refuse): void {
  server.on('checkContinue', (request, response) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request, response) => {
    const failure = new Failure(417, 'The only expectation that can be met is 100-continue');
    refuse(failure, { socket: request.socket, response });
  });
}

/** Tells a client that waits for it to send the body. */
export function continueReading(request: IncomingMessage): void {
  const response = waiting.get(request);
  if (response === undefined) return;
  waiting.delete(request);
  response.writeContinue();
}
