import type { IncomingMessage, Server, ServerResponse } from 'node:http';

const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/**
 * `Expect: 100-continue` (RFC 9110 section 10.1.1) is answered when the body is about to be read and not before, so
 * that a client whose request is refused by its header never sends the body. Any other expectation is refused in
 * request-head.ts.
 */
export function deferContinue(server: Server): void {
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  };
  server.on('checkContinue', handle).on('checkExpectation', handle);
}

/** Tells a client that waits for it to send the body. */
export function continueReading(request: IncomingMessage): void {
  const response = waiting.get(request);
  if (response === undefined) return;
  waiting.delete(request);
  response.writeContinue();
}
